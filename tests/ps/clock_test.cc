// The system's clock is set while a training runs.

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ps/optimizer.h"
#include "ps/server.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

constexpr MemberId kFirst = {0, 1};
constexpr MemberId kSecond = {1, 1};

class ClockTest : public testing::Test {
 protected:
  ~ClockTest() override { SetClockBy(absl::ZeroDuration()); }

  std::unique_ptr<Server> MakeServer(absl::Duration lease) {
    Server::Options options;
    options.barrier.expected_workers = 2;
    options.barrier.lease = lease;
    options.max_wait = absl::Milliseconds(1);
    options.log = [this](const std::string& note) {
      if (absl::StrContains(note, "lost") && !lost_.HasBeenNotified()) {
        lost_.Notify();
      }
    };
    return std::make_unique<Server>(options, *MakeSgd(1));
  }

  absl::Notification lost_;
};

TEST_F(ClockTest, SetForwardDropsNoLivingWorker) {
  const auto server = MakeServer(absl::Minutes(10));
  ASSERT_TRUE(server->Join(kFirst).ok());
  ASSERT_TRUE(server->Join(kSecond).ok());
  SetClockBy(absl::Hours(1));
  ASSERT_TRUE(server->Heartbeat(kFirst).ok());
  // What ends this wait is the look at the clock that ends memberships too.
  absl::Notification looked;
  server->Wait({1, false, {}}, [&](const auto& result) { looked.Notify(); });
  looked.WaitForNotification();
  EXPECT_FALSE(lost_.HasBeenNotified());
  EXPECT_EQ(server->report().live_workers, 2u);
}

// The server's thread waits for the end of the lease by the true time of day,
// and the clock by which it was told that is an hour ahead.
TEST_F(ClockTest, SetBackKeepsNoDeadWorker) {
  SetClockBy(absl::Hours(1));
  const auto server = MakeServer(absl::Milliseconds(1));
  ASSERT_TRUE(server->Join(kFirst).ok());
  EXPECT_TRUE(lost_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(server->report().live_workers, 0u);
}

}  // namespace
}  // namespace penstock::ps
