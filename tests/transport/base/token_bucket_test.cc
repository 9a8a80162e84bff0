#include "transport/base/token_bucket.h"

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

constexpr absl::Duration kPause = absl::Seconds(1);

// Returns how many tokens can be taken in a row at `now`.
int TakeAll(TokenBucket* bucket, absl::Time now) {
  int taken = 0;
  while (taken < 1000 && bucket->Take(now)) ++taken;
  return taken;
}

TEST(TokenBucket, BurstThenOneForEachPause) {
  TokenBucket bucket(5, kPause);
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(TakeAll(&bucket, now), 5);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(TakeAll(&bucket, now + kPause / 2), 0);
    now += kPause;
    EXPECT_EQ(TakeAll(&bucket, now), 1);
  }
}

TEST(TokenBucket, IsFullAgainAfterAWhileAndNeverMore) {
  TokenBucket bucket(5, kPause);
  EXPECT_EQ(TakeAll(&bucket, absl::UnixEpoch()), 5);
  EXPECT_EQ(TakeAll(&bucket, absl::UnixEpoch() + 3 * kPause), 3);
  EXPECT_EQ(TakeAll(&bucket, absl::UnixEpoch() + absl::Hours(1)), 5);
}

TEST(TokenBucket, RefusalsCostNothing) {
  TokenBucket bucket(1, kPause);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(bucket.Take(now));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(bucket.Take(now));
  EXPECT_TRUE(bucket.Take(now + kPause));
}

}  // namespace
}  // namespace base
}  // namespace penstock
