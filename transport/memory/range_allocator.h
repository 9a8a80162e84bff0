// Tracks the free parts of a region. Knows offsets only, and does not touch the
// memory.

#ifndef PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
#define PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/types/optional.h"

namespace penstock {
namespace memory {

// Allocates ranges of [0, capacity), and joins free neighbours (Knuth, TAOCP
// vol. 1, section 2.5). Takes the first fit by address among kNearby free
// ranges, and otherwise the best fit. Within the first `roving_bytes`, a search
// begins after the range that was allocated last (exercise 6 of that section).
// Allocating and freeing take a time logarithmic in the number of free ranges.
// The number of free ranges has no bound: an application may keep every second
// slice. Not thread-safe.
class RangeAllocator {
 public:
  // The granule of offsets and lengths: a cache line, which is also the
  // alignment for vector loads of tensors.
  static constexpr uint64_t kGranule = 64;
  // The number of free ranges that a search visits in address order before it
  // falls back to the best fit. First fit keeps allocated ranges close
  // together.
  static constexpr int kNearby = 16;

  explicit RangeAllocator(uint64_t capacity, uint64_t roving_bytes = 0);

  // Allocates `length` bytes, rounded up to granules and at least one. Returns
  // their offset, or nothing if no free range is long enough.
  absl::optional<uint64_t> Allocate(uint64_t length);
  // Frees the range that Allocate(length) returned as `offset`.
  void Free(uint64_t offset, uint64_t length);

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }

 private:
  static uint64_t RoundUp(uint64_t length);

  using Ranges = std::map<uint64_t, uint64_t>;  // offset -> length

  // Returns the lowest offset >= `from` at which `want` bytes are free. Looks
  // at kNearby free ranges, and returns nothing if none of them has room.
  absl::optional<uint64_t> FindNear(uint64_t from, uint64_t want) const;
  // Returns the offset of the shortest free range of at least `want` bytes.
  absl::optional<uint64_t> FindBest(uint64_t want) const;
  void Take(uint64_t offset, uint64_t size);
  void AddFree(uint64_t offset, uint64_t size);
  // Returns the range after the removed one.
  Ranges::iterator RemoveFree(Ranges::iterator range);

  const uint64_t capacity_;
  const uint64_t roving_bytes_;
  uint64_t used_ = 0;
  uint64_t next_ = 0;  // where the next roving search begins
  Ranges free_;        // never adjacent
  // The free ranges again, as (length, offset).
  std::set<std::pair<uint64_t, uint64_t>> by_length_;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
