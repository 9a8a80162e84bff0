// Tests a system clock that is set while a training runs.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/ps/server/small_server.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

constexpr View kView = SmallServer::kView;
constexpr WorkerId kFirst = {0, 1};
constexpr WorkerId kSecond = {1, 1};

class ClockTest : public testing::Test {
 protected:
  ~ClockTest() override { SetClockBy(absl::ZeroDuration()); }

  std::unique_ptr<Server> MakeServer(absl::Duration lease) {
    Server::Options options;
    options.membership.expected_workers = 2;
    options.membership.lease = lease;
    options.max_wait = absl::Milliseconds(1);
    options.log = [this](const std::string& note) {
      if (absl::StrContains(note, "lost") && !lost_.HasBeenNotified()) {
        lost_.Notify();
      }
    };
    auto server = std::make_unique<Server>(options);
    TableSpec rows = SparseTable("e", 1);
    absl::get<SparseSpec>(rows.rows).time_to_live = absl::Minutes(10);
    EXPECT_TRUE(server->Define(SmallServer::Definition({{rows}})).ok());
    return server;
  }

  absl::Notification lost_;
};

TEST_F(ClockTest, SetForwardDropsNoLivingWorkerAndNoRow) {
  const auto server = MakeServer(absl::Minutes(10));
  ASSERT_TRUE(server->Join(kView, kFirst).ok());
  ASSERT_TRUE(server->Join(kView, kSecond).ok());
  for (const WorkerId& worker : {kFirst, kSecond}) {
    Answer<Server::PushVerdict> pushed;
    server->Push(kView, worker, 0, {{Ids("e", {5}), Floats("e", {1, 1}, {1})}},
                 pushed.callback());
    ASSERT_TRUE(pushed.Wait().ok());
  }
  ASSERT_TRUE(
      server->TakeSnapshot(kView, CutPoint::OfVersion(1), {}, absl::Seconds(60))
          .ok());
  SetClockBy(absl::Hours(1));
  ASSERT_TRUE(server->Heartbeat(kView.run, kFirst).ok());
  // Waits for the answer. The check of the clock ends memberships, and so ends
  // this wait.
  Answer<Server::Pulled> pulled;
  Server::PullSpec spec;
  spec.clock = 7;
  server->Pull(kView, spec, pulled.callback());
  EXPECT_TRUE(absl::IsDeadlineExceeded(pulled.Wait().status()));
  EXPECT_FALSE(lost_.HasBeenNotified());
  EXPECT_EQ(server->report().live_workers, 2u);
  EXPECT_EQ(server->report().tables[0].rows, 1u);
}

// Tests a clock that is set an hour ahead before the join. The server's thread
// still waits by the true time of day.
TEST_F(ClockTest, SetBackKeepsNoDeadWorker) {
  SetClockBy(absl::Hours(1));
  const auto server = MakeServer(absl::Milliseconds(1));
  ASSERT_TRUE(server->Join(kView, kFirst).ok());
  EXPECT_TRUE(lost_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_EQ(server->report().live_workers, 0u);
}

// Waits for a version that never comes.
TEST_F(ClockTest, SetBackProlongsNoSnapshot) {
  const auto server = MakeServer(absl::Minutes(10));
  SetClockBy(absl::Hours(1));
  const auto snapshot = server->TakeSnapshot(kView, CutPoint::OfVersion(1), {},
                                             absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(snapshot.status())) << snapshot.status();
}

TEST(LeaseTest, LargeModelsHaveTheTimeOfAPush) {
  constexpr int64_t kFourSeconds = 32 << 20;  // f32, at 32 MiB/s
  for (const auto& [elements, lease] :
       {std::pair<int64_t, absl::Duration>{1, absl::Seconds(10)},
        {kFourSeconds, absl::Seconds(14)}}) {
    Server::Options options;
    options.membership.lease = absl::Seconds(10);
    Server server(options);
    const Model model = {{DenseTable("w", {elements})}};
    ASSERT_TRUE(server.Define(SmallServer::Definition(model)).ok());
    const auto joined = server.Join(kView, kFirst);
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(joined->lease, lease) << elements;
  }
}

}  // namespace
}  // namespace penstock::ps
