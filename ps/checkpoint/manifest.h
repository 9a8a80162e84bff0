// A checkpoint's manifest: a checkpoint is valid once it has one.
//
// The file is: magic "PSTKMANI" | version u32 | length u32 | checksum u64 |
// a message of manifest.proto, of `length` bytes. The checksum is of the rest
// of the header and of the message.

#ifndef PENSTOCK_PS_CHECKPOINT_MANIFEST_H_
#define PENSTOCK_PS_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/records.h"
#include "ps/checkpoint/shard_writer.h"

namespace penstock::ps::checkpoint {

constexpr size_t kManifestHeaderBytes = 24;
// Some 100,000 tables. A reader takes no larger one.
constexpr uint64_t kMaxManifestBytes = 16 << 20;
constexpr size_t kMaxShards = 65536;
// Incremental checkpoints that stand one on the other, whatever the writer was
// told to allow.
constexpr uint32_t kMaxDepth = 64;

// Where a training was at the cut that a checkpoint has.
struct CutRecord {
  std::vector<WorkerClock> clocks;
  // The step of the synchronous tables; nullopt: there are none, or the
  // checkpoint is of an earlier release.
  absl::optional<uint64_t> version;
  absl::optional<uint64_t> floor;  // nullopt: of an earlier release
};

struct Manifest {
  Attempt attempt;
  uint64_t run = 0;  // 0: of an earlier release
  std::vector<std::string> servers;
  uint64_t placement_epoch = 0;
  int64_t created_unix_seconds = 0;
  Model model;
  CutRecord cut;
  std::vector<ShardInfo> shards;  // by index
  absl::optional<Attempt> base;   // of an incremental checkpoint
  uint32_t depth = 0;             // bases below it
};

// Returns INVALID_ARGUMENT if it is too large.
absl::StatusOr<std::string> Encode(const Manifest& manifest);

// Checks everything that it can without the shards, the model, too. Returns
// DATA_LOSS if the bytes are damaged or make no sense, FAILED_PRECONDITION if
// their version is newer.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes);

// Reads the manifest of the checkpoint of `step`. Errors name the file.
// NOT_FOUND: there is no such checkpoint.
absl::StatusOr<Manifest> ReadManifest(Files* files, uint64_t step);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_MANIFEST_H_
