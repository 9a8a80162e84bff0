#include "bench/rpc/report/statistics.h"

#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

TEST(PercentileTest, IsTheNearestRank) {
  const std::vector<double> samples = {50, 15, 40, 20, 35};
  EXPECT_EQ(Percentile(samples, 5), 15);
  EXPECT_EQ(Percentile(samples, 30), 20);
  EXPECT_EQ(Percentile(samples, 40), 20);
  EXPECT_EQ(Percentile(samples, 50), 35);
  EXPECT_EQ(Percentile(samples, 99), 50);
  EXPECT_EQ(Percentile(samples, 100), 50);
}

TEST(PercentileTest, OfOneSampleIsThatSample) {
  EXPECT_EQ(Percentile({7}, 0), 7);
  EXPECT_EQ(Percentile({7}, 50), 7);
  EXPECT_EQ(Percentile({7}, 99), 7);
}

TEST(PercentileTest, NinetyNinthOfAHundredLeavesOneOut) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  EXPECT_EQ(Percentile(samples, 99), 99);
}

TEST(MedianTest, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(MedianTest, OneWildRoundDoesNotMoveItFar) {
  EXPECT_EQ(Median({10, 11, 12, 11, 4000}), 11);
}

TEST(SpreadTest, IsTheSmallestAndTheLargest) {
  const Spread spread = SpreadOf({3, 9, 1, 4});
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 9);
}

TEST(StatisticsTest, NoSamplesGiveZero) {
  EXPECT_EQ(Percentile({}, 50), 0);
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(SpreadOf({}).min, 0);
  EXPECT_EQ(SpreadOf({}).max, 0);
}

}  // namespace
}  // namespace bench
}  // namespace penstock
