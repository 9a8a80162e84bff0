#include "transport/progress/spin_policy.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

constexpr absl::Duration kMax = absl::Nanoseconds(SpinPolicy::kMaxNanos);

TEST(SpinPolicy, BeginsWithTheDefault) {
  EXPECT_EQ(SpinPolicy(PollingMode::kAdaptive).Budget(),
            absl::Microseconds(50));
}

TEST(SpinPolicy, GrowsToItsBoundWhileSpinsSucceed) {
  SpinPolicy policy(PollingMode::kAdaptive);
  absl::Duration last = policy.Budget();
  for (int i = 0; i < 100; ++i) {
    policy.Record(true, absl::Microseconds(3));
    EXPECT_GE(policy.Budget(), last);
    last = policy.Budget();
  }
  EXPECT_EQ(last, kMax);
}

TEST(SpinPolicy, ShrinksToNothingWhileWaitsAreLong) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(true, absl::Milliseconds(5));
  EXPECT_EQ(policy.Budget(), absl::ZeroDuration());
}

TEST(SpinPolicy, GivingUpIsNoSuccess) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(false, absl::Microseconds(1));
  EXPECT_EQ(policy.Budget(), absl::ZeroDuration());
}

TEST(SpinPolicy, RecoversFromNothingThroughNearMisses) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(true, absl::Milliseconds(5));
  for (int i = 0; i < 4; ++i) policy.Record(true, absl::Microseconds(30));
  EXPECT_GE(policy.Budget(), absl::Microseconds(30));
}

TEST(SpinPolicy, OtherModesLearnNothing) {
  SpinPolicy busy(PollingMode::kBusy);
  SpinPolicy event(PollingMode::kEvent);
  for (SpinPolicy* policy : {&busy, &event}) {
    for (int i = 0; i < 10; ++i) policy->Record(i % 2 == 0, kMax);
  }
  EXPECT_EQ(busy.Budget(), absl::InfiniteDuration());
  EXPECT_EQ(event.Budget(), absl::ZeroDuration());
}

}  // namespace
}  // namespace progress
}  // namespace penstock
