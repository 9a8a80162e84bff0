// Verifies checkpoints, and finds the last good checkpoint.

#ifndef PENSTOCK_PS_CHECKPOINT_VERIFY_H_
#define PENSTOCK_PS_CHECKPOINT_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// A function that receives the number of processed bytes and the total, on the
// operation's thread. If it returns false, the operation ends and returns
// CANCELLED.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

// Returns true for an error about the contents of a checkpoint: wrong bytes, or
// a missing file. Returns false for other errors, of the disk, the network or
// the permissions: the checkpoint may then be good.
bool IsDamage(const absl::Status& status);

struct Damage {
  uint64_t step = 0;   // of the checkpoint, which may be a base
  std::string table;   // empty: of the whole shard
  uint64_t block = 0;  // of the table in the shard, from 1 on; 0: none
  std::string what;    // names the file
};

struct Verification {
  uint64_t checkpoints = 0;  // of the chain
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  // The number of all damages. `damages` lists only the first kMaxDamages.
  uint64_t damaged = 0;
  std::vector<Damage> damages;
};
constexpr size_t kMaxDamages = 100;

// Reads every byte of a checkpoint and of its bases. Reports damage in the
// result, and continues after it. Returns NOT_FOUND if the checkpoint is
// missing, FAILED_PRECONDITION if the format is newer or the folder is a link,
// CANCELLED, and read errors that do not mean damage.
absl::StatusOr<Verification> Verify(Files* files, uint64_t step,
                                    const Progress& progress = nullptr);

// Selects how much is read before a checkpoint counts as good.
enum class Thoroughness {
  kQuick,  // manifests, and the beginning and the end of each shard
  kFull,   // every byte
};

struct LastGood {
  Chain chain;
  // The damage of newer checkpoints, which were therefore skipped.
  std::vector<absl::Status> skipped;
};

// Returns the newest good checkpoint. Returns NOT_FOUND if there is no
// checkpoint, and DATA_LOSS if all are damaged. Fails if a checkpoint cannot be
// read but may be good, because of its format, a missing permission or an error
// of the disk: restoring an older checkpoint instead would silently lose
// progress.
absl::StatusOr<LastGood> FindLastGood(Files* files, Thoroughness thoroughness,
                                      const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_VERIFY_H_
