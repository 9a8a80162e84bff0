#include "transport/progress/real_time.h"

#include <sched.h>

#include <thread>

#include "gtest/gtest.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace progress {
namespace {

TEST(RealTime, OrdinaryThreadsAlwaysGoOn) {
  RealTimeCores one(1);
  for (bool is_busy : {false, true}) {
    RealTimeSpin spin(is_busy, &one);
    EXPECT_TRUE(spin.MayGoOn(/*is_real_time=*/false));
  }
}

TEST(RealTime, SpinsInBusyModeOnly) {
  RealTimeCores many(8);
  RealTimeSpin adaptive(/*is_busy=*/false, &many);
  EXPECT_FALSE(adaptive.MayGoOn(true));
  RealTimeSpin busy(/*is_busy=*/true, &many);
  EXPECT_TRUE(busy.MayGoOn(true));
  EXPECT_TRUE(busy.MayGoOn(true)) << "once is enough";
}

TEST(RealTime, ASingleCoreIsNeverHeld) {
  RealTimeCores one(1);
  RealTimeSpin busy(/*is_busy=*/true, &one);
  EXPECT_FALSE(busy.MayGoOn(true));
  EXPECT_FALSE(busy.MayGoOn(true)) << "nor later";
}

TEST(RealTime, TheLastCoreStaysFree) {
  RealTimeCores two(2);
  {
    RealTimeSpin first(/*is_busy=*/true, &two);
    RealTimeSpin second(/*is_busy=*/true, &two);
    EXPECT_TRUE(first.MayGoOn(true));
    EXPECT_FALSE(second.MayGoOn(true));
  }
  RealTimeSpin next(/*is_busy=*/true, &two);
  EXPECT_TRUE(next.MayGoOn(true)) << "a spin that ends gives its core back";
}

// Runs `function` on a new thread with another scheduling policy.
template <typename Function>
void WithPolicy(int policy, Function function) {
  std::thread([&] {
    sched_param param = {};
    param.sched_priority = sched_get_priority_min(policy);
    function(sched_setscheduler(0, policy, &param) == 0);
  }).join();
}

TEST(RealTime, KnowsThePolicyOfItsThread) {
  EXPECT_FALSE(IsRealTime(base::SteadyNow()))
      << "or the test itself has been started so";
  for (int policy : {SCHED_FIFO, SCHED_RR, SCHED_FIFO | SCHED_RESET_ON_FORK}) {
    WithPolicy(policy & ~SCHED_RESET_ON_FORK, [&](bool is_set) {
      if (!is_set) GTEST_SKIP() << "may not become a real-time thread";
      if (policy & SCHED_RESET_ON_FORK) {
        sched_param param = {};
        param.sched_priority = 1;
        ASSERT_EQ(sched_setscheduler(0, policy, &param), 0);
      }
      EXPECT_TRUE(IsRealTime(base::SteadyNow()));
    });
  }
  EXPECT_FALSE(IsRealTime(base::SteadyNow()));
}

TEST(RealTime, NoticesANewPolicyInTime) {
  std::thread([] {
    const absl::Time now = base::SteadyNow();
    EXPECT_FALSE(IsRealTime(now));
    sched_param param = {};
    param.sched_priority = sched_get_priority_min(SCHED_FIFO);
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
      GTEST_SKIP() << "may not become a real-time thread";
    }
    const absl::Duration look = absl::Nanoseconds(kRealTimeLookNanos);
    EXPECT_FALSE(IsRealTime(now + look - absl::Nanoseconds(1)))
        << "asked the kernel again";
    EXPECT_TRUE(IsRealTime(now + look));
  }).join();
}

}  // namespace
}  // namespace progress
}  // namespace penstock
