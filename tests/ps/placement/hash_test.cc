#include "ps/placement/hash.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

// Tests the values of MurmurHash3's fmix64, computed independently. They are
// part of the wire format.
TEST(HashTest, IsFmix64) {
  EXPECT_EQ(Fmix64(0x0u), 0x0u);
  EXPECT_EQ(Fmix64(0x1u), 0xb456bcfc34c2cb2cu);
  EXPECT_EQ(Fmix64(0x2u), 0x3abf2a20650683e7u);
  EXPECT_EQ(Fmix64(0x123456789abcdefu), 0x87cbfbfe89022ceau);
  EXPECT_EQ(Fmix64(0xffffffffffffffffu), 0x64b5720b4b825f21u);
}

TEST(HashTest, ShardIsTheUpperHalfScaled) {
  EXPECT_EQ(ShardOf(0x0u, 256), 0u);
  EXPECT_EQ(ShardOf(0x1u, 256), 180u);
  EXPECT_EQ(ShardOf(0x2u, 256), 58u);
  EXPECT_EQ(ShardOf(0x123456789abcdefu, 1000), 530u);
  EXPECT_EQ(ShardOf(0xffffffffffffffffu, 65536), 25781u);
}

TEST(HashTest, IdsInARowSpreadEvenly) {
  // Counts the ids of each shard. Each of 256 shards gets 1,000 of 256,000 ids
  // on average, with a standard deviation of 32 if the spread is random.
  for (uint64_t stride : {uint64_t{1}, uint64_t{256}, uint64_t{1} << 32}) {
    std::vector<int> counts(256, 0);
    for (uint64_t i = 0; i < 256000; ++i) ++counts[ShardOf(i * stride, 256)];
    for (int count : counts) {
      EXPECT_GT(count, 800) << stride;
      EXPECT_LT(count, 1200) << stride;
    }
  }
}

TEST(HashTest, EachShardIsWithinBounds) {
  for (uint32_t shards : {1u, 3u, 65536u}) {
    for (uint64_t id = 0; id < 10000; ++id) {
      EXPECT_LT(ShardOf(~id, shards), shards);
    }
  }
}

}  // namespace
}  // namespace penstock::ps
