#include "ps/client/steady_timer.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

TEST(SteadyTimerTest, CallsComeInTheOrderOfTheirTimes) {
  SteadyTimer timer;
  absl::Notification last;
  std::vector<int> order;
  const absl::Time now = base::SteadyNow();
  timer.At(now + absl::Milliseconds(60), [&] {
    order.push_back(3);
    last.Notify();
  });
  timer.At(now + absl::Milliseconds(40), [&] { order.push_back(2); });
  timer.At(now - absl::Hours(1), [&] { order.push_back(1); });
  timer.At(absl::InfiniteFuture(), [&] { order.push_back(4); });
  ASSERT_TRUE(last.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(base::SteadyNow(), now + absl::Milliseconds(60));
}

TEST(SteadyTimerTest, WhatIsCancelledNeverBegins) {
  SteadyTimer timer;
  absl::Notification later;
  bool was_called = false;
  const absl::Time soon = base::SteadyNow() + absl::Milliseconds(30);
  const auto first = timer.At(soon, [&] { was_called = true; });
  timer.At(soon, [&] { later.Notify(); });
  timer.Cancel(first);
  timer.Cancel(first);
  timer.Cancel({});
  ASSERT_TRUE(later.WaitForNotificationWithTimeout(kPatience));
  EXPECT_FALSE(was_called);
}

// Tests new calls after cancelled ones. The thread still wakes at the times of
// cancelled calls. A new call may be earlier or later than those times.
TEST(SteadyTimerTest, CallsComeBesideTheTimesOfCancelledOnes) {
  for (const int cancelled : {10, 30, 3600000}) {
    SteadyTimer timer;
    absl::Notification waits;  // the thread then waits for the cancelled call
    absl::Notification called;
    const absl::Time now = base::SteadyNow();
    const auto first = timer.At(now + absl::Milliseconds(cancelled), [] {});
    timer.At(now, [&] { waits.Notify(); });
    ASSERT_TRUE(waits.WaitForNotificationWithTimeout(kPatience)) << cancelled;
    timer.Cancel(first);
    timer.At(now + absl::Milliseconds(20), [&] { called.Notify(); });
    ASSERT_TRUE(called.WaitForNotificationWithTimeout(kPatience)) << cancelled;
    EXPECT_GE(base::SteadyNow(), now + absl::Milliseconds(20));
  }
}

TEST(SteadyTimerTest, AClockThatIsSetMovesNothing) {
  for (const absl::Duration by : {absl::Hours(1), -absl::Hours(1)}) {
    SteadyTimer timer;
    absl::Notification called;
    const absl::Time soon = base::SteadyNow() + absl::Milliseconds(30);
    timer.At(soon, [&] { called.Notify(); });
    SetClockBy(by);
    called.WaitForNotification();
    EXPECT_GE(base::SteadyNow(), soon);
    SetClockBy(absl::ZeroDuration());
  }
}

}  // namespace
}  // namespace penstock::ps
