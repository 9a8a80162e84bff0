#include "ps/shards/worker_leases.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "ps/consistency/membership.h"
#include "ps/server/running_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr WorkerId kFirst = {0, 1};
constexpr WorkerId kSecond = {1, 1};

// The leases of two members. The test sets the time.
class WorkerLeasesTest : public testing::Test {
 protected:
  WorkerLeasesTest() {
    leases_.Learn({}, now_);
    for (const WorkerId& each : {kFirst, kSecond}) leases_.Note(each, now_);
  }

  WorkerLeases leases_{kLease, absl::Minutes(1)};
  absl::Time now_ = absl::UnixEpoch();
};

// Stops the primary several times. The primary sees the time, but not yet the
// heartbeats that wait in its sockets.
TEST_F(WorkerLeasesTest, StopsInARowEndNoLease) {
  absl::Time time = now_;
  RunningTime running(time);
  for (int i = 0; i < 10; ++i) {
    time += absl::Minutes(1);
    EXPECT_TRUE(leases_.Silent(running.At(time)).empty());
    running.Beat(time);
  }
  EXPECT_LE(running.At(time) - now_, 10 * RunningTime::kLongestGap);
}

TEST_F(WorkerLeasesTest, AWorkerIsSilentOnceItsLeaseHasEnded) {
  now_ += kLease / 2;
  leases_.Renew(kFirst, now_);
  now_ += kLease / 2;
  EXPECT_TRUE(leases_.Silent(now_).empty());
  now_ += absl::Milliseconds(1);
  const auto silent = leases_.Silent(now_);
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0].rank, kSecond.rank);
  // Expects the worker again, unless the caller removes it.
  EXPECT_EQ(leases_.Silent(now_).size(), 1u);
  leases_.Remove(kSecond);
  EXPECT_TRUE(leases_.Silent(now_).empty());
}

TEST_F(WorkerLeasesTest, SignsOfLifeRenewALease) {
  for (int i = 0; i < 5; ++i) {
    now_ += kLease;
    leases_.Renew(kFirst, now_);
    leases_.Note(kSecond, now_);
    EXPECT_TRUE(leases_.Silent(now_).empty());
  }
}

}  // namespace
}  // namespace penstock::ps
