#include "transport/memory/range_allocator.h"

#include <algorithm>
#include <iterator>

namespace penstock {
namespace memory {

constexpr uint64_t RangeAllocator::kGranule;
constexpr int RangeAllocator::kNearby;

RangeAllocator::RangeAllocator(uint64_t capacity, uint64_t roving_bytes)
    : capacity_(capacity / kGranule * kGranule), roving_bytes_(roving_bytes) {
  if (capacity_ > 0) AddFree(0, capacity_);
}

uint64_t RangeAllocator::RoundUp(uint64_t length) {
  length = std::max<uint64_t>(length, 1);
  return (length + kGranule - 1) / kGranule * kGranule;
}

absl::optional<uint64_t> RangeAllocator::FindNear(uint64_t from,
                                                  uint64_t want) const {
  auto it = free_.upper_bound(from);
  if (it != free_.begin()) --it;  // `from` may be inside it
  for (int i = 0; i < kNearby && it != free_.end(); ++i, ++it) {
    const uint64_t end = it->first + it->second;
    const uint64_t begin = std::max(it->first, from);
    if (begin < end && end - begin >= want) return begin;
  }
  return absl::nullopt;
}

absl::optional<uint64_t> RangeAllocator::FindBest(uint64_t want) const {
  const auto it = by_length_.lower_bound({want, 0});
  if (it == by_length_.end()) return absl::nullopt;
  return it->second;
}

void RangeAllocator::Take(uint64_t offset, uint64_t size) {
  const auto it = std::prev(free_.upper_bound(offset));
  const uint64_t begin = it->first;
  const uint64_t end = begin + it->second;
  RemoveFree(it);
  if (begin < offset) AddFree(begin, offset - begin);
  if (offset + size < end) AddFree(offset + size, end - (offset + size));
}

void RangeAllocator::AddFree(uint64_t offset, uint64_t size) {
  free_.emplace(offset, size);
  by_length_.emplace(size, offset);
}

RangeAllocator::Ranges::iterator RangeAllocator::RemoveFree(
    Ranges::iterator range) {
  by_length_.erase({range->second, range->first});
  return free_.erase(range);
}

absl::optional<uint64_t> RangeAllocator::Allocate(uint64_t length) {
  if (length > capacity_) return absl::nullopt;  // keeps RoundUp from wrapping
  const uint64_t want = RoundUp(length);
  absl::optional<uint64_t> offset = FindNear(next_, want);
  if (!offset.has_value()) offset = FindNear(0, want);
  if (!offset.has_value()) offset = FindBest(want);
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
    next = RemoveFree(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      RemoveFree(previous);
    }
  }
  AddFree(offset, size);
}

}  // namespace memory
}  // namespace penstock
