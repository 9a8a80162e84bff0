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

// Returns whether an error is about the bytes of a checkpoint, and not about
// who asks or how: such a one may be good.
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
// result, and the search goes on behind it. Errors: NOT_FOUND: there is no such
// checkpoint, FAILED_PRECONDITION: it is of a newer format, or behind a link,
// PERMISSION_DENIED, CANCELLED.
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
// all, and DATA_LOSS if all are damaged. A checkpoint that is good and cannot
// be read, as of a newer format or for lack of permission, is an error: nobody
// is to go back behind it without knowing.
absl::StatusOr<LastGood> FindLastGood(Files* files, Thoroughness thoroughness,
                                      const Progress& progress = nullptr);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_VERIFY_H_
