// Tracks the order in which a shard's rows were used.

#ifndef PENSTOCK_PS_SPARSE_RECENCY_H_
#define PENSTOCK_PS_SPARSE_RECENCY_H_

#include <cstdint>

#include "ps/sparse/index.h"
#include "ps/sparse/prefetch.h"
#include "ps/sparse/row_store.h"

namespace penstock::ps::sparse {

// A list in exact order of use, linked through the rows by their numbers. Not
// thread-safe.
class Recency {
 public:
  explicit Recency(const RowStore* rows) : rows_(rows) {}

  // Return the oldest and the newest row, or kNoRow if the list is empty.
  uint32_t oldest() const { return oldest_; }
  uint32_t newest() const { return newest_; }

  // Adds a row as the newest. The row must not be in the list.
  void Add(uint32_t number) {
    Row* const row = rows_->At(number);
    row->newer = kNoRow;
    row->older = newest_;
    LinkTo(newest_, &Row::newer, &oldest_) = number;
    newest_ = number;
  }

  void Remove(uint32_t number) {
    const Row* const row = rows_->At(number);
    LinkTo(row->newer, &Row::older, &newest_) = row->older;
    LinkTo(row->older, &Row::newer, &oldest_) = row->newer;
  }

  void Use(uint32_t number) {
    if (number == newest_) return;
    Remove(number);
    Add(number);
  }

  // Replaces row `number` in the list by its copy, row `to`.
  void Moved(uint32_t number, uint32_t to) {
    const Row* const row = rows_->At(number);
    LinkTo(row->newer, &Row::older, &newest_) = to;
    LinkTo(row->older, &Row::newer, &oldest_) = to;
  }

  // Prefetches the cache lines that Use(number) will write.
  void Prefetch(uint32_t number) const {
    const Row* const row = rows_->At(number);
    if (row->newer != kNoRow) FetchLineToWrite(rows_->At(row->newer));
    if (row->older != kNoRow) FetchLineToWrite(rows_->At(row->older));
  }

  void Clear() { oldest_ = newest_ = kNoRow; }

 private:
  // Returns a reference to `link` of row `number`. For kNoRow, returns `own`:
  // oldest_ or newest_.
  uint32_t& LinkTo(uint32_t number, uint32_t Row::*link, uint32_t* own) {
    return number == kNoRow ? *own : rows_->At(number)->*link;
  }

  const RowStore* const rows_;
  uint32_t oldest_ = kNoRow;
  uint32_t newest_ = kNoRow;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_RECENCY_H_
