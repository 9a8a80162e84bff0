// The rows of one shard in memory, and their index.

#ifndef PENSTOCK_PS_SPARSE_SHARD_ROWS_H_
#define PENSTOCK_PS_SPARSE_SHARD_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/hash.h"
#include "ps/sparse/index.h"
#include "ps/sparse/options.h"
#include "ps/sparse/recency.h"
#include "ps/sparse/row_store.h"

namespace penstock::ps::sparse {

// Rows in memory, found by id and, if the table needs it, by their last use.
// Enforces no limits: the caller decides when to grow and which row to release.
//
// `tag` is the low half of the id's hash. Not thread-safe.
class ShardRows {
 public:
  // Makes an empty set of rows. `options` and `hash` must outlive this object.
  ShardRows(const Options* options, const HashKey* hash);
  ShardRows(const ShardRows&) = delete;
  ShardRows& operator=(const ShardRows&) = delete;

  // Returns the number of the id's row, or kNoRow.
  uint32_t Find(uint64_t id, uint32_t tag) const {
    return index_.Find(tag,
                       [&](uint32_t row) { return store_.At(row)->id == id; });
  }
  Row* At(uint32_t number) const { return store_.At(number); }
  static constexpr size_t kMaxPrefetch = 128;
  // Prefetches the memory that calls for these hashes will read or write.
  // Limited to kMaxPrefetch hashes.
  void Prefetch(const uint64_t* hashes, size_t count) const;

  // Makes room for `rows` more rows. Returns false if memory cannot be
  // allocated, or if rows and index would exceed `byte_limit`.
  bool GrowFor(size_t rows, size_t byte_limit);
  // Returns a lower bound of the rows that fit in `byte_limit` together with
  // the index.
  size_t RowsWithin(size_t byte_limit) const;
  // Adds a row as the newest, and returns its number. Only the id is set. Call
  // only if there is room.
  uint32_t Take(uint64_t id, uint32_t tag);
  void Release(uint32_t number);

  // Returns true if the order of use is tracked, so that oldest() works.
  bool keeps_order() const { return keeps_order_; }
  // Returns the least recently used row, or kNoRow. Requires keeps_order().
  uint32_t oldest() const { return recency_.oldest(); }
  void MakeNewest(uint32_t number) {
    if (keeps_order_) recency_.Use(number);
  }
  // Sorts the order of use by Row::last_use.
  void SortByLastUse();

  // Moves up to `limit` rows out of almost empty slabs, to free pages. Returns
  // true if there is more to do. Row numbers change.
  bool Compact(size_t limit);

  // Change the number of reserved rows, whose memory is kept; see RowStore.
  void Reserve(size_t rows) { store_.Reserve(rows); }
  void Unreserve(size_t rows) { store_.Unreserve(rows); }
  size_t reserved() const { return store_.reserved(); }

  const RowStore& store() const { return store_; }
  size_t size() const { return store_.size(); }
  size_t bytes() const { return store_.bytes() + index_.bytes(); }
  size_t LongestRun() const { return index_.LongestRun(); }

 private:
  uint32_t TagOf(uint32_t number) const {
    return static_cast<uint32_t>(hash_(store_.At(number)->id));
  }
  void Move(uint32_t number);

  const HashKey& hash_;
  const bool keeps_order_;
  RowIndex index_;
  RowStore store_;
  Recency recency_;
  uint32_t drain_from_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_ROWS_H_
