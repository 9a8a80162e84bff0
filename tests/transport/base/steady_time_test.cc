#include "transport/base/steady_time.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/base/set_clock.h"

namespace penstock {
namespace base {
namespace {

class SteadyTimeTest : public testing::Test {
 protected:
  ~SteadyTimeTest() override { SetClockBy(absl::ZeroDuration()); }
};

TEST_F(SteadyTimeTest, NobodySetsIt) {
  for (const absl::Duration offset : {absl::Hours(1), -absl::Hours(1)}) {
    const absl::Time system = absl::Now();
    const absl::Time steady = SteadyNow();
    SetClockBy(offset);
    EXPECT_GE(absl::AbsDuration(absl::Now() - system), absl::Minutes(59));
    EXPECT_GE(SteadyNow(), steady);
    EXPECT_LT(SteadyNow() - steady, absl::Minutes(30));
    SetClockBy(absl::ZeroDuration());
  }
}

// Sets the system clock back while a thread waits. The wait must still end in
// time.
TEST_F(SteadyTimeTest, WaitEndsInTimeThoughTheClockIsSetBack) {
  SetClockBy(absl::Hours(1));
  absl::Mutex mu;
  SteadyCondVar never;
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(1);
  absl::MutexLock lock(&mu);
  while (SteadyNow() < deadline) never.WaitUntil(&mu, deadline);
  EXPECT_LT(SteadyNow() - deadline, absl::Minutes(30));
}

TEST_F(SteadyTimeTest, DeadlineThatHasPassedIsNotWaitedFor) {
  absl::Mutex mu;
  SteadyCondVar never;
  absl::MutexLock lock(&mu);
  never.WaitUntil(&mu, SteadyNow());
  never.WaitUntil(&mu, absl::InfinitePast());
}

TEST_F(SteadyTimeTest, SignalEndsAWaitWithoutDeadline) {
  absl::Mutex mu;
  SteadyCondVar condition;
  // An atomic, because ThreadSanitizer does not know absl::Mutex.
  std::atomic<bool> signalled{false};
  std::thread other([&] {
    absl::MutexLock lock(&mu);
    signalled = true;
    condition.Signal();
  });
  {
    absl::MutexLock lock(&mu);
    while (!signalled) condition.WaitUntil(&mu, absl::InfiniteFuture());
  }
  other.join();
}

}  // namespace
}  // namespace base
}  // namespace penstock
