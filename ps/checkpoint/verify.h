// Looks whether checkpoints are good, and finds the last that is.

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

// Is told, by the thread that calls, how many bytes of all are done. Returns
// false to end the operation, which then returns CANCELLED.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

// Returns true for an error about the contents of a checkpoint: bytes that do
// not fit, or a file that is missing. Returns false for any other error, of the
// disk, the network or the permissions: that checkpoint may be good.
bool IsDamage(const absl::Status& status);

struct Damage {
  uint64_t step = 0;   // of the checkpoint, which may be a base
  std::string table;   // empty: of the whole shard
  uint64_t block = 0;  // of the table's in the shard, from 1 on; 0: none
  std::string what;    // names the file
};

struct Verification {
  uint64_t checkpoints = 0;  // of the chain
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  // All of them, and the first kMaxDamages in full.
  uint64_t damaged = 0;
  std::vector<Damage> damages;
};
constexpr size_t kMaxDamages = 100;

// Reads every byte of a checkpoint and of those that it stands on. Damage is a
// result, and the search continues after it. Errors: NOT_FOUND for a step
// without a checkpoint, FAILED_PRECONDITION for a newer format or a symbolic
// link, CANCELLED, and each error of a read that is no damage.
absl::StatusOr<Verification> Verify(Files* files, uint64_t step,
                                    const Progress& progress = nullptr);

// How much is read before a checkpoint is called good.
enum class Thoroughness {
  kQuick,  // manifests, and the beginning and the end of each shard
  kFull,   // every byte
};

struct LastGood {
  Chain chain;
  // Newer ones that are damaged, and why.
  std::vector<absl::Status> skipped;
};

// Returns the newest good checkpoint. Returns NOT_FOUND if there is none at
// all, and DATA_LOSS if all are damaged. Returns an error for a checkpoint that
// may be good but cannot be read: a newer format, a lack of permission, an
// error of the disk. A caller never goes back behind such a checkpoint
// unawares.
absl::StatusOr<LastGood> FindLastGood(Files* files, Thoroughness thoroughness,
                                      const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_VERIFY_H_
