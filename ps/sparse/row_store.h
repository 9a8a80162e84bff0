// The memory of a shard's rows.

#ifndef PENSTOCK_PS_SPARSE_ROW_STORE_H_
#define PENSTOCK_PS_SPARSE_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/sparse/index.h"
#include "ps/sparse/memory.h"
#include "ps/sparse/prefetch.h"

namespace penstock::ps::sparse {

// What stands before a row's elements: the value, then each slot, all of them
// `dim` floats. Together they are one piece of memory, so that the processor
// fetches them as one.
struct Row {
  uint64_t id;
  // Neighbours in the order of use, if that is kept; see Recency. Of a free row
  // `older` is the next free one.
  uint32_t newer;
  uint32_t older;
  uint32_t last_use;  // seconds, by the caller's clock
  uint32_t updates;   // pushes that were applied; stays at its largest value
  uint32_t changed;   // the epoch of the last change
  uint32_t used;      // 0: this row is free

  float* elements() { return reinterpret_cast<float*>(this + 1); }
  const float* elements() const {
    return reinterpret_cast<const float*>(this + 1);
  }
};

// Rows of one size, in slabs of 2 MiB (more for rows above 128 KiB). A row has
// a number that stays until it is moved.
//
// A slab's memory counts as it is committed: by pages in the first slabs, so
// that a small table is small, as a whole in later ones, which are huge pages.
// A slab without rows goes back to the system, if the others have room. One
// with few rows can be drained: its caller moves its rows elsewhere.
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
    // Of a long row the processor's own prefetcher finds the rest.
    const size_t bytes = stride_ < 1024 ? stride_ : 1024;
    for (size_t i = 0; i < bytes; i += 64) FetchLine(memory + i);
  }

  // Makes more rows available. Returns false if there is no memory, or bytes()
  // would be above `limit`.
  bool AddRoom(size_t limit);

  // Rows that so many bytes have room for, at least.
  size_t RowsIn(size_t bytes) const {
    return bytes / (rows_per_commit_ * stride_) * rows_per_commit_;
  }

  // Returns a row, with nothing in it but `used`. Asks for available() > 0.
  uint32_t Take();
  void Release(uint32_t row);

  // Rows that Take() can give.
  size_t available() const { return available_; }
  // Of those, so many more, or fewer, stay: neither the system gets them back
  // nor may Drain() count on them.
  void Reserve(size_t rows) { reserved_ += rows; }
  void Unreserve(size_t rows) { reserved_ -= rows; }
  size_t reserved() const { return reserved_; }
  // Rows in use.
  size_t size() const { return size_; }
  size_t bytes() const { return bytes_; }
  // Bytes from one row to the next.
  size_t stride() const { return stride_; }
  static size_t StrideOf(size_t elements);

  // Chooses a slab to be drained if more than half of all rows are free. It
  // gives out no rows from then on, and goes back with the last of its rows.
  // Returns whether one is being drained.
  bool Drain();
  // Returns a row in the slab that is being drained, looking on from `*from`
  // (0 at first), or kNoRow.
  uint32_t NextToMove(uint32_t* from) const;
  // The slab is used like any other again.
  void StopDraining();
  bool draining() const { return draining_ != kNoSlab; }

  // Returns the first row in use whose number is at least `from`, looking at
  // `*looks` rows at most and counting them down; kNoRow: none. `*next` is
  // where to go on, kNoRow at the end.
  uint32_t NextUsed(uint32_t from, size_t* looks, uint32_t* next) const;

 private:
  static constexpr uint32_t kOffsetBits = 16;
  static constexpr uint32_t kOffsetMask = (1u << kOffsetBits) - 1;
  static constexpr uint32_t kMaxSlabs = 0xffff;
  static constexpr uint32_t kNoSlab = 0xffffffff;

  struct Slab {
    char* base = nullptr;    // null: there is none with this number
    uint32_t committed = 0;  // rows that may be used
    uint32_t fresh = 0;      // the first row that never was
    uint32_t used = 0;
    uint32_t free = kNoRow;  // the first of those that are free again
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
  std::vector<uint32_t> open_;  // slabs with rows to give
  size_t slabs_held_ = 0;
  uint32_t growing_ = kNoSlab;  // is not wholly committed
  uint32_t draining_ = kNoSlab;
  size_t available_ = 0;
  size_t reserved_ = 0;
  size_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_ROW_STORE_H_
