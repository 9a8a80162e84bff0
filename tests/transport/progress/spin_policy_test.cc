#include "transport/progress/spin_policy.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

constexpr absl::Duration kMax = absl::Nanoseconds(SpinPolicy::kMaxNanos);

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(SpinPolicy, BeginsWithTheDefault) {
  EXPECT_EQ(SpinPolicy(PollingMode::kAdaptive).Budget(kNow),
            absl::Microseconds(50));
}

TEST(SpinPolicy, GrowsToItsBoundWhileSpinsSucceed) {
  SpinPolicy policy(PollingMode::kAdaptive);
  absl::Duration last = policy.Budget(kNow);
  for (int i = 0; i < 100; ++i) {
    policy.Record(true, absl::Microseconds(3));
    EXPECT_GE(policy.Budget(kNow), last);
    last = policy.Budget(kNow);
  }
  EXPECT_EQ(last, kMax);
}

TEST(SpinPolicy, ShrinksToNothingWhileWaitsAreLong) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(true, absl::Milliseconds(5));
  EXPECT_EQ(policy.Budget(kNow), absl::ZeroDuration());
}

TEST(SpinPolicy, GivingUpIsNoSuccess) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(false, absl::Microseconds(1));
  EXPECT_EQ(policy.Budget(kNow), absl::ZeroDuration());
}

TEST(SpinPolicy, RecoversFromNothingThroughNearMisses) {
  SpinPolicy policy(PollingMode::kAdaptive);
  for (int i = 0; i < 100; ++i) policy.Record(true, absl::Milliseconds(5));
  for (int i = 0; i < 4; ++i) policy.Record(true, absl::Microseconds(30));
  EXPECT_GE(policy.Budget(kNow), absl::Microseconds(30));
}

constexpr absl::Duration kSlice = absl::Milliseconds(4);

// Loses the core for a time slice, holds it for `had`, and loses it again.
// Returns the end of the second loss.
absl::Time LoseTwice(SpinPolicy* policy, absl::Duration had) {
  CoreLosses losses;
  policy->RecordYield(kSlice, kNow, &losses);
  const absl::Time end = kNow + had + kSlice;
  policy->RecordYield(kSlice, end, &losses);
  return end;
}

TEST(SpinPolicy, RestsAfterItHasLostItsCoreAgainAndAgain) {
  SpinPolicy policy(PollingMode::kAdaptive);
  const absl::Duration before = policy.Budget(kNow);
  const absl::Time lost = LoseTwice(&policy, absl::Microseconds(20));
  EXPECT_EQ(policy.Budget(lost), absl::ZeroDuration());
  const absl::Time end = lost + SpinPolicy::kRestFactor * kSlice;
  EXPECT_TRUE(policy.Rests(end - absl::Microseconds(1)));
  EXPECT_FALSE(policy.Rests(end));
  EXPECT_EQ(policy.Budget(end - absl::Microseconds(1)), absl::ZeroDuration());
  EXPECT_EQ(policy.Budget(end), before) << "what was learnt is kept";
}

TEST(SpinPolicy, ARestEndsSpinsExceptInBusyMode) {
  for (const PollingMode mode : {PollingMode::kAdaptive, PollingMode::kBusy}) {
    SpinPolicy policy(mode);
    EXPECT_FALSE(policy.EndsSpins(kNow));
    const absl::Time lost = LoseTwice(&policy, absl::Microseconds(20));
    EXPECT_EQ(policy.EndsSpins(lost), mode == PollingMode::kAdaptive);
    EXPECT_FALSE(policy.EndsSpins(lost + SpinPolicy::kRestFactor * kSlice));
  }
}

TEST(SpinPolicy, OneLossSoonAfterARestDoublesIt) {
  SpinPolicy policy(PollingMode::kAdaptive);
  absl::Time now = LoseTwice(&policy, absl::Microseconds(20));
  absl::Duration rest = SpinPolicy::kRestFactor * kSlice;
  for (int i = 0; i < 10; ++i) {
    now += rest + kSlice;
    CoreLosses losses;  // each on another thread
    policy.RecordYield(kSlice, now, &losses);
    rest = std::min(2 * rest, absl::Nanoseconds(SpinPolicy::kMaxRestNanos));
    EXPECT_TRUE(policy.Rests(now + rest - absl::Microseconds(1)));
    EXPECT_FALSE(policy.Rests(now + rest));
  }
  EXPECT_EQ(rest, absl::Nanoseconds(SpinPolicy::kMaxRestNanos));
}

TEST(SpinPolicy, AShortYieldSoonAfterARestIsNoLoss) {
  SpinPolicy policy(PollingMode::kAdaptive);
  const absl::Time lost = LoseTwice(&policy, absl::Microseconds(20));
  const absl::Time end = lost + SpinPolicy::kRestFactor * kSlice;
  const auto took = absl::Nanoseconds(SpinPolicy::kLostCoreNanos - 1);
  CoreLosses losses;
  policy.RecordYield(took, end + took, &losses);
  EXPECT_FALSE(policy.Rests(end + took));
}

TEST(SpinPolicy, OneLossLongAfterARestIsNoReasonToRest) {
  SpinPolicy policy(PollingMode::kAdaptive);
  const absl::Time lost = LoseTwice(&policy, absl::Microseconds(20));
  const absl::Duration rest = SpinPolicy::kRestFactor * kSlice;
  const absl::Time later = lost + 2 * rest + kSlice;
  CoreLosses losses;
  policy.RecordYield(kSlice, later, &losses);
  EXPECT_FALSE(policy.Rests(later));
}

// Draws from [least, most], each order of magnitude with the same probability.
absl::Duration LogUniform(absl::Duration least, absl::Duration most,
                          std::mt19937* random) {
  const double orders = std::log(absl::FDivDuration(most, least));
  return std::exp(std::uniform_real_distribution<>(0, orders)(*random)) * least;
}

// Tests a neighbour that never sleeps. Each yield then costs a time slice.
TEST(SpinPolicy, NextToAProgramThatNeverSleepsCoresAreSeldomLost) {
  for (int seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SpinPolicy policy(PollingMode::kAdaptive);
    CoreLosses losses;
    int lost = 0;
    absl::Time now = kNow;
    while (now < kNow + absl::Seconds(10)) {
      if (policy.Rests(now)) {
        now += absl::Milliseconds(1);
        continue;
      }
      now +=
          LogUniform(absl::Microseconds(1), absl::Microseconds(300), &random);
      const absl::Duration slice =
          LogUniform(absl::Milliseconds(2), absl::Milliseconds(20), &random);
      now += slice;
      policy.RecordYield(slice, now, &losses);
      ++lost;
    }
    // Allows two losses before the first rest of at least 10 ms, and seven
    // more, which double the rest up to a second.
    EXPECT_LE(lost, 2 + 7 + 10);
  }
}

TEST(SpinPolicy, LosingTheCoreNowAndThenIsNoReasonToRest) {
  SpinPolicy policy(PollingMode::kAdaptive);
  const absl::Time lost = LoseTwice(&policy, kSlice);
  EXPECT_GT(policy.Budget(lost), absl::ZeroDuration());
}

TEST(SpinPolicy, HavingBeenStoppedIsNoReasonToRest) {
  SpinPolicy policy(PollingMode::kAdaptive);
  CoreLosses losses;
  policy.RecordYield(kSlice, kNow, &losses);
  const absl::Time now = kNow + absl::Hours(1);
  policy.RecordYield(absl::Hours(1) - absl::Microseconds(1), now, &losses);
  EXPECT_GT(policy.Budget(now), absl::ZeroDuration());
}

TEST(SpinPolicy, TwoThreadsThatLoseTheirCoresOnceHaveLostNoneTwice) {
  SpinPolicy policy(PollingMode::kAdaptive);
  CoreLosses one, other;
  policy.RecordYield(kSlice, kNow, &one);
  const absl::Time later = kNow + kSlice / 4;
  // Records a loss that overlaps the first loss.
  policy.RecordYield(kSlice, later, &other);
  EXPECT_GT(policy.Budget(later), absl::ZeroDuration());
  // Records losses after each of the two threads had the core for a slice.
  const absl::Time again = kNow + 2 * kSlice;
  policy.RecordYield(kSlice, again, &one);
  EXPECT_GT(policy.Budget(again), absl::ZeroDuration());
}

TEST(SpinPolicy, AThreadThatLosesItsCoreTwiceRestsWhateverOthersDo) {
  SpinPolicy policy(PollingMode::kAdaptive);
  CoreLosses one, other;
  policy.RecordYield(kSlice, kNow, &one);
  const absl::Duration quick = absl::Nanoseconds(SpinPolicy::kLostCoreNanos);
  policy.RecordYield(quick, kNow + kSlice / 2, &other);
  const absl::Time now = kNow + kSlice + absl::Microseconds(20);
  policy.RecordYield(kSlice, now, &one);
  EXPECT_EQ(policy.Budget(now), absl::ZeroDuration());
}

TEST(SpinPolicy, ASingleCostlyLossIsAReasonToRest) {
  SpinPolicy policy(PollingMode::kAdaptive);
  policy.RecordCostlyYield(kSlice, kNow);
  const absl::Time end = kNow + SpinPolicy::kLongRestFactor * kSlice;
  EXPECT_EQ(policy.Budget(end - absl::Microseconds(1)), absl::ZeroDuration());
  EXPECT_GT(policy.Budget(end), absl::ZeroDuration());
}

TEST(SpinPolicy, CostlyLossesThatRecurDoubleTheRestUpToABound) {
  SpinPolicy policy(PollingMode::kAdaptive);
  absl::Duration rest = SpinPolicy::kLongRestFactor * kSlice;
  absl::Time now = kNow;
  for (int i = 0; i < 20; ++i) {
    policy.RecordCostlyYield(kSlice, now);
    EXPECT_EQ(policy.Budget(now + rest - absl::Microseconds(1)),
              absl::ZeroDuration());
    EXPECT_GT(policy.Budget(now + rest), absl::ZeroDuration());
    now += rest + kSlice;
    rest = std::min(2 * rest, absl::Nanoseconds(SpinPolicy::kMaxRestNanos));
  }
  EXPECT_EQ(rest, absl::Nanoseconds(SpinPolicy::kMaxRestNanos));
}

TEST(SpinPolicy, ACostlyLossLongAfterARestBeginsAnew) {
  SpinPolicy policy(PollingMode::kAdaptive);
  policy.RecordCostlyYield(kSlice, kNow);
  const absl::Time later = kNow + absl::Seconds(1);
  policy.RecordCostlyYield(kSlice, later);
  EXPECT_GT(policy.Budget(later + SpinPolicy::kLongRestFactor * kSlice),
            absl::ZeroDuration());
}

TEST(SpinPolicy, ShortYieldsAndStopsCostNoRest) {
  SpinPolicy policy(PollingMode::kAdaptive);
  policy.RecordCostlyYield(absl::Nanoseconds(SpinPolicy::kLostCoreNanos - 1),
                           kNow);
  policy.RecordCostlyYield(absl::Hours(1), kNow);
  EXPECT_GT(policy.Budget(kNow), absl::ZeroDuration());
}

TEST(SpinPolicy, YieldingToOtherSpinnersIsNoLoss) {
  SpinPolicy policy(PollingMode::kAdaptive);
  CoreLosses losses;
  absl::Time now = kNow;
  for (int i = 0; i < 100; ++i) {
    const auto took = absl::Nanoseconds(SpinPolicy::kLostCoreNanos - 1);
    now += took;
    policy.RecordYield(took, now, &losses);
  }
  EXPECT_GT(policy.Budget(now), absl::ZeroDuration());
}

TEST(SpinPolicy, BusyDoesNotRest) {
  SpinPolicy policy(PollingMode::kBusy);
  const absl::Time lost = LoseTwice(&policy, absl::Microseconds(20));
  EXPECT_EQ(policy.Budget(lost), absl::InfiniteDuration());
}

TEST(SpinPolicy, OtherModesLearnNothing) {
  SpinPolicy busy(PollingMode::kBusy);
  SpinPolicy event(PollingMode::kEvent);
  for (SpinPolicy* policy : {&busy, &event}) {
    for (int i = 0; i < 10; ++i) policy->Record(i % 2 == 0, kMax);
  }
  EXPECT_EQ(busy.Budget(kNow), absl::InfiniteDuration());
  EXPECT_EQ(event.Budget(kNow), absl::ZeroDuration());
}

}  // namespace
}  // namespace progress
}  // namespace penstock
