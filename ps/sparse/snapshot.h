// A table as it was at one point in time.

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
  // Only rows that changed after this epoch, and the ids that were removed
  // after it: the epoch() of an earlier snapshot. None: all rows.
  absl::optional<uint32_t> since;
  // Bytes that copies of rows may take which changed before Next() came to
  // them. If they take more, the snapshot fails, never a push.
  size_t copy_bytes = size_t{64} << 20;
};

// Copy on write: a row that is changed or removed before Next() has come to it
// is copied first. So values, slots and counts of updates are those of the
// point in time; the last use is that of when the row was copied, since pulls
// change it, too.
//
// For one thread at a time. Ends with its destructor, which comes before the
// table's.
class Snapshot {
 public:
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Clears `block` and fills it with up to `limit` rows of one shard; the
  // shards come in turn. Returns false, with an empty block, when it has given
  // each row once. Before that a block may be empty, too: a call that meets
  // only rows of the tier that are not in the snapshot returns after some of
  // them. Locks a shard for some microseconds for each hundred rows.
  //
  // RESOURCE_EXHAUSTED: the copies, or what is remembered of removed ids, had
  // no room. DATA_LOSS: the tier has failed. All later calls return that, too.
  absl::StatusOr<bool> Next(size_t limit, RowBlock* block);

  // Of this point in time; see SnapshotOptions::since.
  uint32_t epoch() const { return plan_->at; }
  // Bytes that copies take now.
  size_t copied_bytes() const { return plan_->copied; }
  // Returns whether copies take more than half of copy_bytes.
  bool is_short_of_room() const {
    return plan_->copied > plan_->copy_limit / 2;
  }

 private:
  friend class Table;
  Snapshot(Table* table, SnapshotPlan* plan,
           std::unique_ptr<Spill::Walk> spilled)
      : table_(table), plan_(plan), spilled_(std::move(spilled)) {}

  // Adds rows that were in the tier.
  void AddSpilled(size_t limit, RowBlock* block);

  Table* const table_;
  SnapshotPlan* const plan_;
  std::unique_ptr<Spill::Walk> spilled_;  // null: there are no more
  size_t shard_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SNAPSHOT_H_
