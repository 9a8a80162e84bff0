// What a server holds, as a shard of a checkpoint.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/server/cancellation.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/pace.h"
#include "ps/server/tables.h"

namespace penstock::ps {

// How many steps each of a server's parts had taken; by place in
// Tables::parts().
using PartSteps = std::vector<uint64_t>;

// How much of a shard is written: bytes of values, slots and rows. `total` is
// what a full one would have of tables that are not finished, so it gets less
// as an incremental one goes on; 0: none is being written. Thread-safe.
struct ShardProgress {
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> total{0};
};

// Writes `snapshot`, which is of `tables`, straight from its memory, and frees
// each value as soon as it is written. Sparse rows come first: they alone may
// fail for lack of memory. Each table of a pack is written as its own.
//
// Leaves out the parts that have taken no step since `base`, which is nullopt
// for a full checkpoint. Rows are those that the snapshot has.
//
// `model` is CheckpointModelOf() the tables' model. Returns CANCELLED soon
// after `cancellation`, which may be null, is cancelled, and what `writer` and
// the snapshot return. Keeps to `pace` unless rows that change have taken half
// of the memory that the snapshot has for them. Counts in `progress`, from 0
// on.
absl::Status WriteSnapshot(const Tables& tables, const checkpoint::Model& model,
                           const absl::optional<PartSteps>& base,
                           const Cancellation* cancellation, Pace* pace,
                           ModelSnapshot snapshot, ShardProgress* progress,
                           checkpoint::ShardWriter* writer);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_SHARD_H_
