// Encodes and decodes the manifest of a checkpoint. A checkpoint with a
// manifest is valid.
//
// The file is: magic "PSTKMANI" | version u32 | length u32 | checksum u64 | a
// message of manifest.proto, of `length` bytes. The checksum covers the rest of
// the header and the message.

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
// Limits the size of the manifests that a reader accepts, in bytes. Enough for
// some 100,000 tables.
constexpr uint64_t kMaxManifestBytes = 16 << 20;
constexpr size_t kMaxShards = 65536;
// Limits the number of incremental checkpoints in a chain. A higher max_depth
// of a writer has no effect.
constexpr uint32_t kMaxDepth = 64;

// Limits the number of restarts that a worker may miss and still continue.
constexpr size_t kMaxEarlierRuns = 64;

// The progress of a training at a checkpoint's cut.
struct CutRecord {
  std::vector<WorkerClock> clocks;
  // The step of the synchronous tables. nullopt if there are no such tables, or
  // if an earlier release wrote the checkpoint.
  absl::optional<uint64_t> version;
  absl::optional<uint64_t> floor;  // nullopt: by an earlier release
};

struct Manifest {
  Attempt attempt;
  uint64_t run = 0;  // 0: by an earlier release
  // The runs that `run` continues, the oldest first; see kMaxEarlierRuns.
  std::vector<uint64_t> earlier_runs;
  std::vector<std::string> servers;
  uint64_t placement_epoch = 0;
  int64_t created_unix_seconds = 0;
  Model model;
  // By table: a digest of the placement of a sparse table's ids, 0 for a dense
  // table. Shard i has the rows of server i of that placement. Empty if an
  // earlier release wrote the checkpoint.
  std::vector<uint64_t> placements;
  CutRecord cut;
  std::vector<ShardInfo> shards;  // by index
  absl::optional<Attempt> base;   // of an incremental checkpoint
  uint32_t depth = 0;             // bases below it
};

// Returns the encoded manifest, or INVALID_ARGUMENT if the manifest is too
// large.
absl::StatusOr<std::string> Encode(const Manifest& manifest);

// Decodes a manifest. Checks everything that needs no shards, including the
// model. Returns DATA_LOSS if the bytes are damaged or inconsistent,
// FAILED_PRECONDITION if their version is newer.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes);

// Reads the manifest of the checkpoint of `step`. Errors name the file. Returns
// NOT_FOUND if the checkpoint is missing.
absl::StatusOr<Manifest> ReadManifest(Files* files, uint64_t step);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_MANIFEST_H_
