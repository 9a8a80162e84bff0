// Writes the values of a server as a shard of a checkpoint.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/pace.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/server/cancellation.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/tables.h"

namespace penstock::ps {

// The number of steps of each part, by index in Tables::parts().
using PartSteps = std::vector<uint64_t>;

// The progress of writing a shard, in bytes of values, slots and rows. `total`
// counts all rows of a sparse table until the table is written, so `total` of
// an incremental shard decreases. `total` is 0 while no shard is written.
// Thread-safe.
struct ShardProgress {
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> total{0};
};

// Writes `snapshot`, a snapshot of `tables`, without copying the dense values.
// Frees each dense value as soon as it is written. Writes sparse rows first,
// because only sparse rows can run out of memory for copies. Writes each table
// of a pack separately.
//
// Omits the dense parts that have taken no step since `base`. `base` is nullopt
// for a full checkpoint. Writes all rows that the snapshot has.
//
// `model` is the result of CheckpointModelOf() for the tables' model.
// `cancellation` may be null. Writes at the speed of `pace`, unless copies of
// changed rows fill half of the snapshot's memory. Resets `progress`, and
// counts there. Returns CANCELLED soon after a cancellation, and the errors of
// `writer` and of the snapshot.
absl::Status WriteSnapshot(const Tables& tables, const checkpoint::Model& model,
                           const absl::optional<PartSteps>& base,
                           const Cancellation* cancellation,
                           checkpoint::Pace* pace, ModelSnapshot snapshot,
                           ShardProgress* progress,
                           checkpoint::ShardWriter* writer);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_
