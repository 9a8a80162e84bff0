#include "transport/memory/range_allocator.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/optional.h"
#include "gtest/gtest.h"

namespace penstock {
namespace memory {
namespace {

constexpr uint64_t kGranule = 64;

TEST(RangeAllocator, FirstFitByAddress) {
  RangeAllocator ranges(10 * kGranule);
  EXPECT_EQ(ranges.Allocate(1), 0u);
  EXPECT_EQ(ranges.Allocate(2 * kGranule), 1 * kGranule);
  EXPECT_EQ(ranges.Allocate(kGranule), 3 * kGranule);
  ranges.Free(1 * kGranule, 2 * kGranule);
  // Expects a range at the end, because the range does not fit into the gap.
  EXPECT_EQ(ranges.Allocate(3 * kGranule), 4 * kGranule);
  EXPECT_EQ(ranges.Allocate(kGranule), 1 * kGranule);
  EXPECT_EQ(ranges.used(), 6 * kGranule);
}

TEST(RangeAllocator, RovesOverWhatIsFree) {
  RangeAllocator ranges(10 * kGranule, 4 * kGranule);
  for (uint64_t at : {0, 1, 2, 3, 0, 1}) {
    EXPECT_EQ(ranges.Allocate(1), at * kGranule);
    ranges.Free(at * kGranule, 1);
  }
  // Searches from the end of the last range, at 2. The new range reaches beyond
  // the roving part, so the next search begins at 0.
  EXPECT_EQ(ranges.Allocate(3 * kGranule), 2 * kGranule);
  EXPECT_EQ(ranges.Allocate(kGranule), 0u);
  // Expects that the gap at 1 is skipped, because it is too small.
  EXPECT_EQ(ranges.Allocate(2 * kGranule), 5 * kGranule);
  EXPECT_EQ(ranges.Allocate(kGranule), 1 * kGranule);
  EXPECT_EQ(ranges.Allocate(3 * kGranule), 7 * kGranule);
  EXPECT_FALSE(ranges.Allocate(1).has_value());
}

TEST(RangeAllocator, WhatLiesBeforeTheLastRangeIsFoundToo) {
  RangeAllocator ranges(4 * kGranule, 4 * kGranule);
  EXPECT_EQ(ranges.Allocate(2 * kGranule), 0u);
  EXPECT_EQ(ranges.Allocate(kGranule), 2 * kGranule);
  ranges.Free(0, 2 * kGranule);
  EXPECT_EQ(ranges.Allocate(2 * kGranule), 0u);
}

TEST(RangeAllocator, LengthsAreRoundedUp) {
  RangeAllocator ranges(3 * kGranule);
  EXPECT_EQ(ranges.Allocate(0), 0u);
  EXPECT_EQ(ranges.Allocate(kGranule + 1), kGranule);
  EXPECT_EQ(ranges.used(), 3 * kGranule);
  EXPECT_FALSE(ranges.Allocate(0).has_value());
  ranges.Free(0, 0);
  ranges.Free(kGranule, kGranule + 1);
  EXPECT_EQ(ranges.used(), 0u);
  EXPECT_EQ(ranges.Allocate(3 * kGranule), 0u);
}

TEST(RangeAllocator, CapacityIsRoundedDown) {
  EXPECT_EQ(RangeAllocator(0).capacity(), 0u);
  EXPECT_EQ(RangeAllocator(63).capacity(), 0u);
  EXPECT_EQ(RangeAllocator(130).capacity(), 128u);
  RangeAllocator none(63);
  EXPECT_FALSE(none.Allocate(0).has_value());
  EXPECT_FALSE(none.Allocate(1).has_value());
}

TEST(RangeAllocator, NeighboursCoalesceInAnyOrder) {
  std::vector<uint64_t> order = {0, 1, 2, 3};
  do {
    RangeAllocator ranges(4 * kGranule);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(ranges.Allocate(1).has_value());
    EXPECT_FALSE(ranges.Allocate(1).has_value());
    for (uint64_t i : order) ranges.Free(i * kGranule, 1);
    EXPECT_EQ(ranges.Allocate(4 * kGranule), 0u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RangeAllocator, LengthsThatWouldOverflowAreRefused) {
  RangeAllocator ranges(uint64_t{1} << 40);
  for (uint64_t length : {~uint64_t{0}, ~uint64_t{0} - 62, ~uint64_t{0} - 64,
                          uint64_t{1} << 63, (uint64_t{1} << 40) + 1}) {
    EXPECT_FALSE(ranges.Allocate(length).has_value()) << length;
  }
  EXPECT_EQ(ranges.used(), 0u);
  EXPECT_EQ(ranges.Allocate(uint64_t{1} << 40), 0u);
}

TEST(RangeAllocator, LargestCapacityWorks) {
  RangeAllocator ranges(~uint64_t{0});
  EXPECT_FALSE(ranges.Allocate(~uint64_t{0}).has_value());
  EXPECT_EQ(ranges.Allocate(ranges.capacity()), 0u);
  ranges.Free(0, ranges.capacity());
  EXPECT_EQ(ranges.used(), 0u);
}

// Tests an application that keeps every second one of its slices. Only one gap
// is long enough for a longer range, and this gap is far behind the others.
TEST(RangeAllocator, TheBestFitIsFoundBehindAnyNumberOfFreeRanges) {
  constexpr uint64_t kCount = 40000;
  RangeAllocator ranges(kCount * kGranule);
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(ranges.Allocate(1), i * kGranule);
  }
  for (uint64_t i = 0; i < kCount; i += 2) ranges.Free(i * kGranule, 1);
  EXPECT_FALSE(ranges.Allocate(2 * kGranule).has_value());
  for (uint64_t i : {30001, 35001, 35003}) ranges.Free(i * kGranule, 1);
  EXPECT_EQ(ranges.Allocate(3 * kGranule), 30000 * kGranule);
  EXPECT_EQ(ranges.Allocate(2 * kGranule), 35000 * kGranule);
  EXPECT_EQ(ranges.Allocate(1), 0u);
}

// The reference: a map of granules, which is searched granule by granule.
class Reference {
 public:
  Reference(size_t granules, size_t roving)
      : taken_(granules), roving_(roving) {}

  absl::optional<uint64_t> Allocate(uint64_t length) {
    const size_t want = Granules(length);
    for (size_t begin : {next_, size_t{0}}) {
      for (size_t at = begin; at + want <= taken_.size(); ++at) {
        if (!IsFree(at, want)) continue;
        std::fill_n(taken_.begin() + at, want, true);
        next_ = at + want < roving_ ? at + want : 0;
        return at * kGranule;
      }
    }
    return absl::nullopt;
  }
  void Free(uint64_t offset, uint64_t length) {
    const auto begin = taken_.begin() + offset / kGranule;
    std::fill(begin, begin + Granules(length), false);
  }
  uint64_t used() const {
    return std::count(taken_.begin(), taken_.end(), true) * kGranule;
  }

 private:
  static size_t Granules(uint64_t length) {
    return std::max<uint64_t>(1, (length + kGranule - 1) / kGranule);
  }
  bool IsFree(size_t at, size_t granules) const {
    const auto begin = taken_.begin() + at;
    return std::find(begin, begin + granules, true) == begin + granules;
  }

  std::vector<bool> taken_;
  const size_t roving_;
  size_t next_ = 0;
};

TEST(RangeAllocator, BehavesAsAMapOfGranules) {
  std::mt19937 random(7);
  for (size_t granules : {1, 5, 64, 200, 201, 202}) {
    // The length of the roving part, in granules: 0, 50 or 100.
    const size_t roving = granules % 4 * 50;
    RangeAllocator ranges(granules * kGranule, roving * kGranule);
    Reference reference(granules, roving);
    struct Taken {
      uint64_t offset;
      uint64_t length;
    };
    std::vector<Taken> taken;
    for (int i = 0; i < 5000; ++i) {
      if (taken.empty() || random() % 2 == 0) {
        const uint64_t length = random() % (granules * kGranule / 4 + 2);
        const absl::optional<uint64_t> offset = ranges.Allocate(length);
        ASSERT_EQ(offset, reference.Allocate(length)) << length;
        if (offset.has_value()) taken.push_back({*offset, length});
      } else {
        std::swap(taken[random() % taken.size()], taken.back());
        ranges.Free(taken.back().offset, taken.back().length);
        reference.Free(taken.back().offset, taken.back().length);
        taken.pop_back();
      }
      ASSERT_EQ(ranges.used(), reference.used());
    }
    for (const Taken& range : taken) ranges.Free(range.offset, range.length);
    EXPECT_EQ(ranges.Allocate(ranges.capacity()), 0u);
  }
}

}  // namespace
}  // namespace memory
}  // namespace penstock
