#include "transport/memory/range_allocator.h"

#include <algorithm>
#include <iterator>

namespace penstock {
namespace memory {

constexpr uint64_t RangeAllocator::kGranule;

RangeAllocator::RangeAllocator(uint64_t capacity)
    : capacity_(capacity / kGranule * kGranule) {
  if (capacity_ > 0) free_[0] = capacity_;
}

uint64_t RangeAllocator::RoundUp(uint64_t length) {
  length = std::max<uint64_t>(length, 1);
  return (length + kGranule - 1) / kGranule * kGranule;
}

absl::optional<uint64_t> RangeAllocator::Allocate(uint64_t length) {
  if (length > capacity_) return absl::nullopt;  // keeps RoundUp from wrapping
  const uint64_t want = RoundUp(length);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < want) continue;
    const uint64_t offset = it->first;
    const uint64_t rest = it->second - want;
    free_.erase(it);
    if (rest > 0) free_[offset + want] = rest;
    used_ += want;
    return offset;
  }
  return absl::nullopt;
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
