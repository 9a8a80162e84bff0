// A consistent view of a table at one point in time.

#ifndef PENSTOCK_PS_SPARSE_SNAPSHOT_H_
#define PENSTOCK_PS_SPARSE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/sparse/copies.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/spill.h"

namespace penstock::ps::sparse {

class Table;

struct SnapshotOptions {
  // The epoch() of an earlier snapshot: selects the rows that have changed and
  // the ids that were removed since. nullopt selects all rows.
  absl::optional<uint32_t> since;
  // Limits the bytes of copies of rows that change before Next() reaches them.
  // Above the limit, the snapshot fails, while pushes continue.
  size_t copy_bytes = size_t{64} << 20;
};

// A copy-on-write view: a row that changes before Next() reaches it is copied
// first. Values, slots and update counts are as of the snapshot's creation. The
// last use is as of the time of the copy, because pulls also change the last
// use.
//
// One thread at a time may use a snapshot. The destructor ends the snapshot.
// Destroy it before the table.
class Snapshot {
 public:
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Clears `block` and fills it with up to `limit` rows of one shard. Goes
  // through the shards in order. Returns false, with an empty block, after all
  // rows were returned. A block may also be empty earlier, because a call stops
  // after a number of the tier's rows that are not in the snapshot. Locks a
  // shard for some microseconds per hundred rows.
  //
  // Returns RESOURCE_EXHAUSTED if the copies or the removed ids had no room,
  // and DATA_LOSS if the tier failed. All later calls return the same error.
  absl::StatusOr<bool> Next(size_t limit, RowBlock* block);

  // Returns the epoch of the snapshot; see SnapshotOptions::since.
  uint32_t epoch() const { return plan_->at; }
  // Returns the current bytes of copies.
  size_t copied_bytes() const { return plan_->copied; }
  // Returns true if copies use more than half of copy_bytes.
  bool is_short_of_room() const {
    return plan_->copied > plan_->copy_limit / 2;
  }

 private:
  friend class Table;
  Snapshot(Table* table, SnapshotPlan* plan,
           std::unique_ptr<Spill::Walk> spilled)
      : table_(table), plan_(plan), spilled_(std::move(spilled)) {}

  // Adds to the block the rows that were in the tier when the snapshot began.
  void AddSpilled(size_t limit, RowBlock* block);

  Table* const table_;
  SnapshotPlan* const plan_;
  std::unique_ptr<Spill::Walk> spilled_;  // null: no more rows
  size_t shard_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SNAPSHOT_H_
