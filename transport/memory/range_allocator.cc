#include "transport/memory/range_allocator.h"

#include <algorithm>
#include <iterator>

namespace penstock {
namespace memory {

constexpr uint64_t RangeAllocator::kGranule;

RangeAllocator::RangeAllocator(uint64_t capacity, uint64_t roving_bytes)
    : capacity_(capacity / kGranule * kGranule), roving_bytes_(roving_bytes) {
  if (capacity_ > 0) free_[0] = capacity_;
}

uint64_t RangeAllocator::RoundUp(uint64_t length) {
  length = std::max<uint64_t>(length, 1);
  return (length + kGranule - 1) / kGranule * kGranule;
}

absl::optional<uint64_t> RangeAllocator::Find(uint64_t from,
                                              uint64_t want) const {
  auto it = free_.upper_bound(from);
  if (it != free_.begin()) --it;  // `from` may be inside it
  for (; it != free_.end(); ++it) {
    const uint64_t end = it->first + it->second;
    const uint64_t begin = std::max(it->first, from);
    if (begin < end && end - begin >= want) return begin;
  }
  return absl::nullopt;
}

void RangeAllocator::Take(uint64_t offset, uint64_t size) {
  auto it = std::prev(free_.upper_bound(offset));
  const uint64_t end = it->first + it->second;
  if (offset + size < end) free_[offset + size] = end - (offset + size);
  if (it->first < offset) {
    it->second = offset - it->first;
  } else {
    free_.erase(it);
  }
}

absl::optional<uint64_t> RangeAllocator::Allocate(uint64_t length) {
  if (length > capacity_) return absl::nullopt;  // keeps RoundUp from wrapping
  const uint64_t want = RoundUp(length);
  absl::optional<uint64_t> offset = Find(next_, want);
  if (!offset.has_value()) offset = Find(0, want);
  if (!offset.has_value()) return absl::nullopt;
  Take(*offset, want);
  used_ += want;
  const uint64_t end = *offset + want;
  next_ = end < roving_bytes_ ? end : 0;
  return offset;
}

void RangeAllocator::Free(uint64_t offset, uint64_t length) {
  uint64_t size = RoundUp(length);
  used_ -= size;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += size;
      return;
    }
  }
  free_[offset] = size;
}

}  // namespace memory
}  // namespace penstock
