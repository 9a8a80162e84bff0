#include "transport/grpc/held_write.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace core {
namespace {

using Moment = HeldWrite::Moment;

// Tests a write for which another thread holds the connection's lock.
TEST(HeldWrite, IsRepeatedAfterItsTimeUntilItSucceeds) {
  int ends = 0;
  absl::Notification succeeded;
  const auto held = HeldWrite::Start([&](Moment moment) {
    if (moment == Moment::kTime || ++ends < 3) return true;
    succeeded.Notify();
    return false;
  });
  ASSERT_NE(held, nullptr);
  ASSERT_TRUE(succeeded.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(ends, 3);
}

TEST(HeldWrite, IsNotRepeatedOnceNothingIsHeld) {
  int calls = 0;
  const auto held = HeldWrite::Start([&](Moment) {
    ++calls;
    return false;
  });
  ASSERT_NE(held, nullptr);
  // Asks for another write, whose end proves that the first has had its turns.
  absl::Notification succeeded;
  const auto other = HeldWrite::Start([&](Moment moment) {
    if (moment != Moment::kEnd) return true;
    succeeded.Notify();
    return false;
  });
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(succeeded.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(calls, 1);
}

TEST(HeldWrite, ThreadThatWaitsWrites) {
  Moment last = Moment::kEnd;
  HeldWrite held([&](Moment moment) {
    last = moment;
    return true;
  });
  held.OnWait();
  EXPECT_EQ(last, Moment::kWait);
}

}  // namespace
}  // namespace core
}  // namespace penstock
