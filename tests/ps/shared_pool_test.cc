#include "ps/shared_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace penstock::ps {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(SharedPoolTest, LimitHasRoomForTheNextVersionOfEachValue) {
  const SharedLimit limit = LimitFor(3 * kGiB, kGiB, 16 * kGiB);
  EXPECT_EQ(limit.bytes, 7 * kGiB);
  EXPECT_FALSE(limit.is_short);
}

TEST(SharedPoolTest, LimitLeavesAQuarterOfTheMemory) {
  EXPECT_FALSE(LimitFor(5 * kGiB, 2 * kGiB, 16 * kGiB).is_short);
  for (const uint64_t values :
       {5 * kGiB + 1, std::numeric_limits<uint64_t>::max()}) {
    const SharedLimit limit = LimitFor(values, 2 * kGiB, 16 * kGiB);
    EXPECT_EQ(limit.bytes, 12 * kGiB);
    EXPECT_TRUE(limit.is_short);
  }
}

TEST(SharedPoolTest, LimitIsNeverLowered) {
  const SharedLimit limit = LimitFor(kGiB, 4 * kGiB, kGiB);
  EXPECT_EQ(limit.bytes, 4 * kGiB);
  EXPECT_TRUE(limit.is_short);
}

}  // namespace
}  // namespace penstock::ps
