// Stores a shard's rows.

#ifndef PENSTOCK_PS_SPARSE_ROW_STORE_H_
#define PENSTOCK_PS_SPARSE_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/sparse/index.h"
#include "ps/sparse/memory.h"
#include "ps/sparse/prefetch.h"

namespace penstock::ps::sparse {

// The header of a row. The elements follow directly: the value, then each slot,
// with `dim` floats each. A row is contiguous, so that the processor can
// prefetch it.
struct Row {
  uint64_t id;
  // The neighbours in the order of use, if the order is tracked; see Recency.
  // In a free row, `older` is the next free row.
  uint32_t newer;
  uint32_t older;
  uint32_t last_use;  // seconds, by the caller's clock
  uint32_t updates;   // applied pushes, saturating
  uint32_t changed;   // the epoch of the last change
  uint32_t used;      // 0: this row is free

  float* elements() { return reinterpret_cast<float*>(this + 1); }
  const float* elements() const {
    return reinterpret_cast<const float*>(this + 1);
  }
};

// A store of equally sized rows in slabs of 2 MiB (larger for rows above 128
// KiB). A row keeps its number until it is moved.
//
// A slab counts as used memory when it is committed. The first slabs are
// committed page by page, which keeps small tables small. Later slabs are huge
// pages, and count in full. An empty slab returns to the system if the other
// slabs have room. A slab with few rows can be drained: the caller moves its
// rows to other slabs.
//
// Not thread-safe.
class RowStore {
 public:
  RowStore(size_t elements, Memory* memory);
  ~RowStore();
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  Row* At(uint32_t row) const {
    return reinterpret_cast<Row*>(slabs_[row >> kOffsetBits].base +
                                  (row & kOffsetMask) * stride_);
  }
  void Prefetch(uint32_t row) const {
    const char* const memory = reinterpret_cast<const char*>(At(row));
    // Prefetch the beginning of the row. The processor's own prefetcher finds
    // the rest of a long row.
    const size_t bytes = stride_ < 1024 ? stride_ : 1024;
    for (size_t i = 0; i < bytes; i += 64) FetchLine(memory + i);
  }

  // Makes more rows available. Returns false if memory cannot be allocated or
  // bytes() would exceed `limit`.
  bool AddRoom(size_t limit);

  // Returns a lower bound of the rows that fit in `bytes`.
  size_t RowsIn(size_t bytes) const {
    return bytes / (rows_per_commit_ * stride_) * rows_per_commit_;
  }

  // Returns an unused row, in which only the field `used` is set. Call only if
  // available() > 0.
  uint32_t Take();
  void Release(uint32_t row);

  // Returns the number of rows that Take() can return without AddRoom().
  size_t available() const { return available_; }
  // Change the number of reserved rows. The memory of reserved rows is neither
  // freed nor drained.
  void Reserve(size_t rows) { reserved_ += rows; }
  void Unreserve(size_t rows) { reserved_ -= rows; }
  size_t reserved() const { return reserved_; }
  // Returns the number of rows in use.
  size_t size() const { return size_; }
  size_t bytes() const { return bytes_; }
  // Returns the distance from one row to the next, in bytes.
  size_t stride() const { return stride_; }
  static size_t StrideOf(size_t elements);

  // Chooses a slab to drain, if more than half of all rows are free. The slab
  // provides no more rows, and is freed when its last row is released. Returns
  // true if a slab is being drained.
  bool Drain();
  // Returns a row of the slab that is being drained, or kNoRow. Searches from
  // `*from`, initially 0.
  uint32_t NextToMove(uint32_t* from) const;
  // Stops draining; the slab provides rows again.
  void StopDraining();
  bool draining() const { return draining_ != kNoSlab; }

  // Returns the first used row with a number of at least `from`, or kNoRow.
  // Checks at most `*looks` rows, and subtracts the number of checked rows from
  // `*looks`. Sets `*next` to the row at which the next call continues, or to
  // kNoRow at the end.
  uint32_t NextUsed(uint32_t from, size_t* looks, uint32_t* next) const;

 private:
  static constexpr uint32_t kOffsetBits = 16;
  static constexpr uint32_t kOffsetMask = (1u << kOffsetBits) - 1;
  static constexpr uint32_t kMaxSlabs = 0xffff;
  static constexpr uint32_t kNoSlab = 0xffffffff;

  struct Slab {
    char* base = nullptr;    // null: the slab's number is unused
    uint32_t committed = 0;  // number of rows whose memory is committed
    uint32_t fresh = 0;      // the first row that was never used
    uint32_t used = 0;
    uint32_t free = kNoRow;  // the first of the released rows
    bool open = false;       // in open_
    bool whole = false;      // counts as a whole
  };

  uint32_t NewSlab(size_t limit);
  void GiveBack(uint32_t index);
  void Open(uint32_t index);
  void Close(uint32_t index);
  size_t BytesOf(const Slab& slab) const;
  size_t RowsToKeep() const;
  uint32_t EmptiestSlab() const;

  Memory* const memory_;
  const size_t stride_;
  const uint32_t rows_per_slab_;
  const size_t slab_bytes_;
  const uint32_t rows_per_commit_;
  std::vector<Slab> slabs_;
  std::vector<uint32_t> open_;  // slabs that can provide rows
  size_t slabs_held_ = 0;
  uint32_t growing_ = kNoSlab;  // the partly committed slab
  uint32_t draining_ = kNoSlab;
  size_t available_ = 0;
  size_t reserved_ = 0;
  size_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ROW_STORE_H_
