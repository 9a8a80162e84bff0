#include "ps/server/checkpoint_turn.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kMoment = absl::Nanoseconds(1);

TEST(CheckpointTurnTest, OneCallerAtATime) {
  const absl::Time now = absl::UnixEpoch();
  CheckpointTurn turn(kLease);
  EXPECT_FALSE(turn.IsTaken(now));
  EXPECT_FALSE(turn.Renew(1, now));
  EXPECT_FALSE(turn.End(1));
  ASSERT_TRUE(turn.Begin(1, now));
  EXPECT_FALSE(turn.Begin(2, now));
  EXPECT_FALSE(turn.Renew(2, now));
  EXPECT_FALSE(turn.End(2));
  EXPECT_TRUE(turn.IsTaken(now));
  EXPECT_TRUE(turn.End(1));
  EXPECT_FALSE(turn.IsTaken(now));
  EXPECT_TRUE(turn.Begin(2, now));
}

TEST(CheckpointTurnTest, SilentCallerLosesItsTurnToTheNext) {
  absl::Time now = absl::UnixEpoch();
  CheckpointTurn turn(kLease);
  ASSERT_TRUE(turn.Begin(1, now));
  now += kLease - kMoment;
  EXPECT_FALSE(turn.Begin(2, now));
  ASSERT_TRUE(turn.Renew(1, now));
  now += kLease - kMoment;
  EXPECT_TRUE(turn.IsTaken(now));
  now += kMoment;
  EXPECT_FALSE(turn.IsTaken(now));
  // Renews after the lease has ended. Nobody has taken the turn, so the first
  // caller may continue.
  ASSERT_TRUE(turn.Renew(1, now));
  EXPECT_FALSE(turn.Begin(2, now));
  now += kLease;
  EXPECT_TRUE(turn.Begin(2, now));
  EXPECT_FALSE(turn.Renew(1, now));
  EXPECT_FALSE(turn.End(1));
  EXPECT_TRUE(turn.IsTaken(now));
}

}  // namespace
}  // namespace penstock::ps
