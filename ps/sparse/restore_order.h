// Finds the rows to drop if a restore does not fit: the least recently used
// ones.

#ifndef PENSTOCK_PS_SPARSE_RESTORE_ORDER_H_
#define PENSTOCK_PS_SPARSE_RESTORE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_set>
#include <utility>

#include "ps/sparse/index.h"
#include "ps/sparse/row_store.h"

namespace penstock::ps::sparse {

// The ids that have no row after a restore.
struct RestoreLoss {
  size_t ids = 0;
  bool by_memory = false;  // true: for lack of memory; false: only by max_rows

  void Add(const RestoreLoss& other) {
    ids += other.ids;
    by_memory |= other.by_memory;
  }
};

// The rows of a shard, sorted by last use, during a restore that has no room
// for all rows. Rows arrive in the order of the file. Also stores the ids that
// have lost their rows, because a later file of an incremental checkpoint may
// add the row of such an id again, or remove the id.
//
// The last use of a row must not change while the row is in this object. Not
// thread-safe.
class RestoreOrder {
 public:
  // Adds all rows of the store.
  explicit RestoreOrder(const RowStore* rows) : rows_(rows) {
    size_t looks = ~size_t{0};
    for (uint32_t from = 0; from != kNoRow;) {
      const uint32_t number = rows->NextUsed(from, &looks, &from);
      if (number != kNoRow) Add(number);
    }
  }

  void Add(uint32_t number) { by_use_.insert({UseOf(number), number}); }
  void Remove(uint32_t number) { by_use_.erase({UseOf(number), number}); }
  // Returns the least recently used row, or kNoRow.
  uint32_t oldest() const {
    return by_use_.empty() ? kNoRow : by_use_.begin()->second;
  }

  void AddLost(uint64_t id, bool by_memory) {
    lost_.insert(id);
    by_memory_ |= by_memory;
  }
  void RemoveLost(uint64_t id) { lost_.erase(id); }
  RestoreLoss loss() const { return {lost_.size(), by_memory_}; }

 private:
  uint32_t UseOf(uint32_t number) const { return rows_->At(number)->last_use; }

  const RowStore* const rows_;
  std::set<std::pair<uint32_t, uint32_t>> by_use_;  // last use, number
  std::unordered_set<uint64_t> lost_;
  bool by_memory_ = false;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_RESTORE_ORDER_H_
