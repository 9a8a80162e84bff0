#include "bench/rpc/message/buffers.h"

#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

size_t SumOf(const BufferSizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

TEST(EqualBuffersTest, HaveAllBytesAndDifferByOneAtMost) {
  for (int count : {1, 2, 7, 100}) {
    for (size_t bytes : {1u, 8u, 99u, 100u, 100003u}) {
      const BufferSizes sizes = EqualBuffers(count, bytes);
      EXPECT_EQ(SumOf(sizes), bytes);
      EXPECT_EQ(sizes.size(), std::min<size_t>(count, bytes));
      const auto ends = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*ends.second - *ends.first, 1u);
    }
  }
}

TEST(MixedBuffersTest, UniformTakesTurns) {
  EXPECT_EQ(MixedBuffers({Scheme::kUniform, 5}, {30, 10, 20}),
            (BufferSizes{10, 20, 30, 10, 20}));
}

TEST(MixedBuffersTest, SkewHasTheSharesOfTfGrpcBench) {
  const BufferSizes sizes = MixedBuffers({Scheme::kSkew, 100}, {1, 2, 3});
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 3u), 60);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 2u), 30);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 1u), 10);
}

TEST(MixedBuffersTest, RandomIsTheSameEachTimeAndHasAllSizes) {
  const BufferSizes sizes = MixedBuffers({Scheme::kRandom, 100}, {1, 2, 3});
  EXPECT_EQ(sizes, MixedBuffers({Scheme::kRandom, 100}, {3, 2, 1}));
  for (size_t size : {1u, 2u, 3u}) {
    EXPECT_GT(std::count(sizes.begin(), sizes.end(), size), 10);
  }
}

TEST(SchemeTest, NamesAreParsed) {
  for (Scheme scheme : AllSchemes()) {
    EXPECT_EQ(ParseScheme(Name(scheme)).value(), scheme);
  }
  EXPECT_FALSE(ParseScheme("skewed").ok());
}

}  // namespace
}  // namespace bench
}  // namespace penstock
