// Tracks the free parts of a region. Knows offsets only, and does not touch the
// memory.

#ifndef PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
#define PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <map>

#include "absl/types/optional.h"

namespace penstock {
namespace memory {

// Allocates ranges of [0, capacity). Uses first fit by address, and joins free
// neighbours (Knuth, TAOCP vol. 1, section 2.5). Within the first
// `roving_bytes`, a search begins after the range that was allocated last
// (exercise 6 there). Walks the free ranges, which are few: one range lives for
// each large message. Not thread-safe.
class RangeAllocator {
 public:
  // The granule of offsets and lengths: a cache line, which is also the
  // alignment for vector loads of tensors.
  static constexpr uint64_t kGranule = 64;

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

  // Returns the first offset from `from` on at which `want` bytes are free.
  absl::optional<uint64_t> Find(uint64_t from, uint64_t want) const;
  void Take(uint64_t offset, uint64_t size);

  const uint64_t capacity_;
  const uint64_t roving_bytes_;
  uint64_t used_ = 0;
  uint64_t next_ = 0;                  // where the next roving search begins
  std::map<uint64_t, uint64_t> free_;  // offset -> length, never adjacent
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_RANGE_ALLOCATOR_H_
