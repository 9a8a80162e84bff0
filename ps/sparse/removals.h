// Remembers ids that lost their rows, for incremental checkpoints.

#ifndef PENSTOCK_PS_SPARSE_REMOVALS_H_
#define PENSTOCK_PS_SPARSE_REMOVALS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/sparse/memory.h"

namespace penstock::ps::sparse {

// A ring buffer of the last removals, each with its epoch. A full ring drops
// its oldest removals, and records the epoch after which it is still complete.
// Allocates memory for the first removal that fits the limit. Not thread-safe.
class Removals {
 public:
  Removals(size_t capacity, Memory* memory)
      : capacity_(capacity), memory_(memory) {}
  ~Removals() {
    if (ring_ != nullptr) memory_->Free(ring_, BytesFor(capacity_));
  }
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;

  // Adds a removal. Epochs must be monotonic. A ring that is allocated by this
  // call has at most `byte_limit` bytes, and its size never changes.
  void Add(uint64_t id, uint32_t epoch, size_t byte_limit) {
    if (ring_ == nullptr && !Allocate(byte_limit)) {
      complete_after_ = epoch;
      return;
    }
    if (end_ - begin_ == capacity_) {
      complete_after_ = std::max(complete_after_, At(begin_++).epoch);
    }
    At(end_++) = {id, epoch};
  }

  // Returns true if all removals of the epochs after `epoch` are known.
  bool CompleteAfter(uint32_t epoch) const { return complete_after_ <= epoch; }

  // Appends the ids removed in the epochs after `since` and up to `at`.
  void Append(uint32_t since, uint32_t at, std::vector<uint64_t>* ids) const {
    for (uint64_t i = begin_; i < end_; ++i) {
      if (At(i).epoch > since && At(i).epoch <= at) ids->push_back(At(i).id);
    }
  }

  // Drops the removals up to `epoch`. Call when no snapshot needs them.
  void Forget(uint32_t epoch) {
    while (begin_ < end_ && At(begin_).epoch <= epoch) ++begin_;
    complete_after_ = std::max(complete_after_, epoch);
  }

  // Returns the bytes of a ring for `capacity` removals.
  static size_t BytesFor(size_t capacity) { return capacity * sizeof(Removal); }
  // Returns the bytes of the ring that were written so far.
  size_t bytes() const {
    return std::min<uint64_t>(end_, capacity_) * sizeof(Removal);
  }
  // Returns the bytes of the ring that are allocated and were not written yet.
  size_t untouched_bytes() const {
    return ring_ == nullptr ? 0 : BytesFor(capacity_) - bytes();
  }
  bool is_allocated() const { return ring_ != nullptr; }

 private:
  struct Removal {
    uint64_t id;
    uint32_t epoch;
  };

  bool Allocate(size_t byte_limit) {
    const size_t capacity = std::min(capacity_, byte_limit / sizeof(Removal));
    if (capacity == 0) return false;
    ring_ = static_cast<Removal*>(
        memory_->Allocate(BytesFor(capacity), /*huge=*/false));
    if (ring_ != nullptr) capacity_ = capacity;
    return ring_ != nullptr;
  }

  Removal& At(uint64_t i) const { return ring_[i % capacity_]; }

  size_t capacity_;
  Memory* const memory_;
  Removal* ring_ = nullptr;
  uint64_t begin_ = 0;  // counted since the creation
  uint64_t end_ = 0;
  uint32_t complete_after_ = 0;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_REMOVALS_H_
