// The part of a snapshot in one shard.

#ifndef PENSTOCK_PS_SPARSE_SHARD_SNAPSHOT_H_
#define PENSTOCK_PS_SPARSE_SHARD_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/copies.h"
#include "ps/sparse/options.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/shard_rows.h"

namespace penstock::ps::sparse {

// Adds a row to a snapshot's block.
void Append(const Options& options, const Row& row, RowBlock* block);

// A shard's part of a snapshot. Copies the old contents of rows that change
// before the snapshot has read them. Assigns changes to epochs. Not
// thread-safe.
class ShardSnapshot {
 public:
  // Makes an object without a snapshot. All pointers must outlive it.
  ShardSnapshot(const Options* options, const ShardRows* rows,
                const Removals* removals);

  // Begins a snapshot of this shard. Later changes belong to epoch plan->at +
  // 1. `plan` must live until End().
  void Begin(SnapshotPlan* plan);
  // Adds the removed ids to `block` first, then up to `limit` rows. Returns
  // true if more rows are left.
  bool Read(size_t limit, RowBlock* block);
  void End();

  // Returns the epoch of changes that happen now.
  uint32_t epoch() const { return epoch_; }
  // Returns true between Begin() and End().
  bool is_in_progress() const { return plan_ != nullptr; }
  // Returns true while rows must keep their numbers, because the snapshot reads
  // them by number.
  bool needs_numbers() const { return plan_ != nullptr && cursor_ != kNoRow; }

  // Copies a row that the snapshot could otherwise not find.
  void Copy(uint32_t number, const Row& row) {
    if (plan_ != nullptr && number >= cursor_ && plan_->Has(row)) {
      copies_.Add(row, plan_);
    }
  }
  // Copies the row's old contents for the snapshot. Call before each change of
  // a row.
  void Preserve(uint32_t number, Row* row) {
    if (row->changed == epoch_) return;
    Copy(number, *row);
    row->changed = epoch_;
  }

 private:
  const Options& options_;
  const ShardRows& rows_;
  const Removals& removals_;
  uint32_t epoch_ = 1;
  SnapshotPlan* plan_ = nullptr;
  uint32_t cursor_ = kNoRow;  // all rows with lower numbers were read
  bool removed_taken_ = false;
  Copies copies_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_SNAPSHOT_H_
