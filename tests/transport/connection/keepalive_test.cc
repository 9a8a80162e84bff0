#include "transport/connection/keepalive.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace connection {
namespace {

using Action = Keepalive::Action;

// A fixture whose clock the test sets.
class KeepaliveTest : public ::testing::Test {
 protected:
  static Keepalive::Config Every10s() {
    Keepalive::Config config;
    config.time = absl::Seconds(10);
    config.timeout = absl::Seconds(3);
    return config;
  }
  absl::Time After(int seconds) const {
    return start_ + absl::Seconds(seconds);
  }

  const absl::Time start_ = absl::FromUnixSeconds(1000);
};

TEST_F(KeepaliveTest, WithoutATimeItNeverWakes) {
  Keepalive keepalive(Keepalive::Config(), start_);
  EXPECT_FALSE(keepalive.enabled());
  EXPECT_EQ(keepalive.NextTimer(), absl::InfiniteFuture());
  EXPECT_EQ(keepalive.OnTimer(After(1000000), true), Action::kNone);
}

TEST_F(KeepaliveTest, SilentPeerIsPingedAndThenDead) {
  Keepalive keepalive(Every10s(), start_);
  EXPECT_EQ(keepalive.NextTimer(), After(10));
  EXPECT_EQ(keepalive.OnTimer(After(9), true), Action::kNone);
  EXPECT_EQ(keepalive.OnTimer(After(10), true), Action::kPing);
  EXPECT_EQ(keepalive.NextTimer(), After(13));
  EXPECT_EQ(keepalive.OnTimer(After(12), true), Action::kNone);
  EXPECT_EQ(keepalive.OnTimer(After(13), true), Action::kPeerIsDead);
}

TEST_F(KeepaliveTest, WhateverComesPutsThePingOff) {
  Keepalive keepalive(Every10s(), start_);
  keepalive.OnReceived(After(8));
  EXPECT_EQ(keepalive.OnTimer(After(10), true), Action::kNone);
  EXPECT_EQ(keepalive.NextTimer(), After(18));
}

TEST_F(KeepaliveTest, WhateverComesAnswersThePing) {
  Keepalive keepalive(Every10s(), start_);
  ASSERT_EQ(keepalive.OnTimer(After(10), true), Action::kPing);
  keepalive.OnReceived(After(11));
  EXPECT_EQ(keepalive.OnTimer(After(13), true), Action::kNone);
  EXPECT_EQ(keepalive.NextTimer(), After(21));
}

TEST_F(KeepaliveTest, LooksAgainInTimeForThePingAfterAnEarlyPong) {
  Keepalive::Config config = Every10s();
  config.timeout = absl::Seconds(300);
  Keepalive keepalive(config, start_);
  ASSERT_EQ(keepalive.OnTimer(After(10), true), Action::kPing);
  EXPECT_EQ(keepalive.NextLook(After(10)), After(20));
  keepalive.OnReceived(After(11));
  EXPECT_EQ(keepalive.OnTimer(After(20), true), Action::kNone);
  EXPECT_EQ(keepalive.NextLook(After(20)), After(21));
  EXPECT_EQ(keepalive.OnTimer(After(21), true), Action::kPing);
}

// Tests a process that rarely runs. An answer may have arrived meanwhile, or
// the peer does not run either.
TEST_F(KeepaliveTest, LateLooksGiveThePeerItsTimeAgain) {
  Keepalive keepalive(Every10s(), start_);
  absl::Time now = After(10);
  ASSERT_EQ(keepalive.OnTimer(now, true), Action::kPing);
  for (int i = 0; i < 20; ++i) {
    now = keepalive.NextLook(now) + absl::Seconds(1);
    ASSERT_EQ(keepalive.OnTimer(now, true), Action::kNone);
  }
  const absl::Time runs_again = now;
  while (keepalive.OnTimer(now, true) == Action::kNone) {
    now = keepalive.NextLook(now);
  }
  EXPECT_EQ(now, runs_again + absl::Seconds(3));
}

TEST_F(KeepaliveTest, SmallDelaysOfLooksAreAddedToThePeersTime) {
  Keepalive keepalive(Every10s(), start_);
  absl::Time now = After(10);
  ASSERT_EQ(keepalive.OnTimer(now, true), Action::kPing);
  absl::Duration delays;
  do {
    delays += absl::Milliseconds(200);
    now = keepalive.NextLook(now) + absl::Milliseconds(200);
  } while (keepalive.OnTimer(now, true) == Action::kNone);
  EXPECT_EQ(now, After(13) + delays);
  EXPECT_EQ(delays, absl::Milliseconds(1600));
}

TEST_F(KeepaliveTest, IdleConnectionIsPingedOnlyIfThatIsPermitted) {
  Keepalive keepalive(Every10s(), start_);
  EXPECT_EQ(keepalive.OnTimer(After(10), false), Action::kNone);
  EXPECT_EQ(keepalive.NextTimer(), After(20));
  Keepalive::Config config = Every10s();
  config.permit_without_calls = true;
  Keepalive permitted(config, start_);
  EXPECT_EQ(permitted.OnTimer(After(10), false), Action::kPing);
}

TEST_F(KeepaliveTest, PingsWithoutDataAreLimited) {
  Keepalive keepalive(Every10s(), start_);
  for (int second : {10, 20}) {
    ASSERT_EQ(keepalive.OnTimer(After(second), true), Action::kPing);
    keepalive.OnReceived(After(second));
  }
  EXPECT_EQ(keepalive.OnTimer(After(30), true), Action::kNone);
  keepalive.OnDataSent();
  EXPECT_EQ(keepalive.OnTimer(After(40), true), Action::kPing);
}

TEST_F(KeepaliveTest, DataAllowsAsManyPingsAsAtFirst) {
  Keepalive keepalive(Every10s(), start_);
  for (int second : {10, 20, 40, 50}) {
    if (second == 40) keepalive.OnDataSent();
    ASSERT_EQ(keepalive.OnTimer(After(second), true), Action::kPing) << second;
    keepalive.OnReceived(After(second));
  }
  EXPECT_EQ(keepalive.OnTimer(After(60), true), Action::kNone);
}

TEST_F(KeepaliveTest, ZeroLiftsTheLimit) {
  Keepalive::Config config = Every10s();
  config.max_pings_without_data = 0;
  Keepalive keepalive(config, start_);
  for (int second = 10; second <= 100; second += 10) {
    ASSERT_EQ(keepalive.OnTimer(After(second), true), Action::kPing);
    keepalive.OnReceived(After(second));
  }
}

class PingPoliceTest : public KeepaliveTest {
 protected:
  static PingPolice::Config Every60s() {
    PingPolice::Config config;
    config.min_interval = absl::Seconds(60);
    return config;
  }
};

TEST_F(PingPoliceTest, FirstPingAndThoseInTimeAreFine) {
  PingPolice police(Every60s());
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(police.OnPing(After(60 * i), true));
}

TEST_F(PingPoliceTest, ThirdEarlyPingIsOneTooMany) {
  PingPolice police(Every60s());
  EXPECT_FALSE(police.OnPing(After(0), true));
  EXPECT_FALSE(police.OnPing(After(1), true));
  EXPECT_FALSE(police.OnPing(After(2), true));
  EXPECT_TRUE(police.OnPing(After(3), true));
}

TEST_F(PingPoliceTest, DataForgives) {
  PingPolice police(Every60s());
  for (int second = 0; second < 100; ++second) {
    EXPECT_FALSE(police.OnPing(After(second), true));
    if (second % 2 == 0) police.OnDataSent();
  }
}

TEST_F(PingPoliceTest, WithoutCallsTwoHoursAreTheInterval) {
  PingPolice police(Every60s());
  EXPECT_FALSE(police.OnPing(After(0), false));
  EXPECT_FALSE(police.OnPing(After(3600), false));
  EXPECT_FALSE(police.OnPing(After(7200), false));
  EXPECT_TRUE(police.OnPing(After(10800), false));
}

TEST_F(PingPoliceTest, ServerMayPermitPingsWithoutCalls) {
  PingPolice::Config config = Every60s();
  config.permit_without_calls = true;
  PingPolice police(config);
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(police.OnPing(After(60 * i), false));
}

TEST_F(PingPoliceTest, ZeroStrikesMeansNoLimit) {
  PingPolice::Config config = Every60s();
  config.max_strikes = 0;
  PingPolice police(config);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(police.OnPing(After(i), true));
}

}  // namespace
}  // namespace connection
}  // namespace penstock
