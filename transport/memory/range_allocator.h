// Where in a region is room: offsets only, the memory itself is not touched.

#ifndef PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
#define PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <map>

#include "absl/types/optional.h"

namespace penstock {
namespace memory {

// Hands out ranges of [0, capacity). The source of the method is Knuth, TAOCP
// vol. 1, section 2.5: first fit with boundary coalescing, ordered by address,
// and for the first `roving_bytes` the roving pointer of its exercise 6: a
// search begins behind the range that was handed out last. Few ranges live at a
// time (one per large message), so a walk is short. Not thread-safe.
class RangeAllocator {
 public:
  // Offsets and lengths are rounded up to this: a cache line, and the alignment
  // that vector loads of tensors want.
  static constexpr uint64_t kGranule = 64;

  explicit RangeAllocator(uint64_t capacity, uint64_t roving_bytes = 0);

  // The offset of `length` free bytes (at least one granule), or none.
  absl::optional<uint64_t> Allocate(uint64_t length);
  // Gives back what Allocate(length) returned as `offset`.
  void Free(uint64_t offset, uint64_t length);

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }

 private:
  static uint64_t RoundUp(uint64_t length);

  // Where `want` bytes are free at or behind `from`.
  absl::optional<uint64_t> Find(uint64_t from, uint64_t want) const;
  void Take(uint64_t offset, uint64_t size);

  const uint64_t capacity_;
  const uint64_t roving_bytes_;
  uint64_t used_ = 0;
  uint64_t next_ = 0;                  // where the next search begins
  std::map<uint64_t, uint64_t> free_;  // offset -> length, never adjacent
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
