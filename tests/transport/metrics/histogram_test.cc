#include "transport/metrics/histogram.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace penstock {
namespace metrics {
namespace {

int BucketOf(uint64_t ns) {
  Histogram histogram;
  histogram.Record(ns);
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    if (histogram.bucket(i) == 1) return i;
  }
  return -1;
}

TEST(Histogram, ABoundBelongsToTheBucketBelowIt) {
  for (int i = 0; i < Histogram::kBounds; ++i) {
    EXPECT_EQ(BucketOf(Histogram::BoundNs(i)), i);
    EXPECT_EQ(BucketOf(Histogram::BoundNs(i) + 1), i + 1);
  }
}

TEST(Histogram, EveryTimeHasABucket) {
  EXPECT_EQ(BucketOf(0), 0);
  EXPECT_EQ(BucketOf(UINT64_MAX), Histogram::kBounds);
}

TEST(Histogram, BoundsDoubleFromAMicrosecondToSeconds) {
  EXPECT_EQ(Histogram::BoundNs(0), 1000u);
  EXPECT_EQ(Histogram::BoundNs(1), 2000u);
  EXPECT_EQ(Histogram::BoundNs(Histogram::kBounds - 1), 16'777'216'000u);
}

TEST(Histogram, SumsUpTimes) {
  Histogram histogram;
  histogram.Record(5);
  histogram.Record(7'000'000);
  EXPECT_EQ(histogram.sum_ns(), 7'000'005u);
}

}  // namespace
}  // namespace metrics
}  // namespace penstock
