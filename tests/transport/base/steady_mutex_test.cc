#include "transport/base/steady_mutex.h"

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_notification.h"

namespace penstock {
namespace base {
namespace {

// Sets the system's clock back for the waits of a test: a wait by that clock
// would take an hour.
class SteadyMutexTest : public testing::Test {
 protected:
  SteadyMutexTest() { SetClockBy(absl::Hours(1)); }
  ~SteadyMutexTest() override { SetClockBy(absl::ZeroDuration()); }

  void Set(int value) {
    SteadyMutexLock lock(&mu_);
    value_ = value;
  }
  // Waits until value_ is at least `value`.
  bool AwaitValue(int value, absl::Duration timeout) {
    SteadyMutexLock lock(&mu_);
    return AwaitValueLocked(value, timeout);
  }
  bool AwaitValueLocked(int value, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto is_there = [this, value]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return value_ >= value;
    };
    return mu_.AwaitFor(timeout, is_there);
  }

  SteadyMutex mu_;
  int value_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST_F(SteadyMutexTest, TimeoutEndsAWaitThoughTheClockIsSetBack) {
  EXPECT_FALSE(AwaitValue(1, absl::Milliseconds(1)));
}

TEST_F(SteadyMutexTest, TrueConditionNeedsNoTime) {
  EXPECT_TRUE(AwaitValue(0, -absl::InfiniteDuration()));
  EXPECT_FALSE(AwaitValue(1, absl::ZeroDuration()));
}

TEST_F(SteadyMutexTest, EachUnlockWakesThreadsWhoseConditionIsTrue) {
  std::thread second([this] {
    EXPECT_TRUE(AwaitValue(2, absl::InfiniteDuration()));
    Set(3);
  });
  std::thread first([this] {
    EXPECT_TRUE(AwaitValue(1, absl::InfiniteDuration()));
    Set(2);
  });
  Set(1);
  EXPECT_TRUE(AwaitValue(3, absl::InfiniteDuration()));
  first.join();
  second.join();
}

// Changes the state and waits without an unlock in between.
TEST_F(SteadyMutexTest, AWaitAlsoWakesOtherThreads) {
  std::thread other([this] {
    EXPECT_TRUE(AwaitValue(1, absl::InfiniteDuration()));
    Set(2);
  });
  {
    SteadyMutexLock lock(&mu_);
    value_ = 1;
    EXPECT_TRUE(AwaitValueLocked(2, absl::InfiniteDuration()));
  }
  other.join();
}

TEST_F(SteadyMutexTest, NotificationWakesAllThreads) {
  SteadyNotification came;
  EXPECT_FALSE(came.WaitFor(absl::Milliseconds(1)));
  std::thread other([&came] { came.Wait(); });
  std::thread another([&came] { came.Wait(); });
  came.Notify();
  EXPECT_TRUE(came.WaitFor(absl::ZeroDuration()));
  other.join();
  another.join();
}

}  // namespace
}  // namespace base
}  // namespace penstock
