#include "transport/connection/heartbeat.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/connection/keepalive.h"
#include "transport/session/counters.h"

namespace penstock {
namespace connection {
namespace {

using Action = Heartbeat::Action;

Keepalive::Config Every(absl::Duration time) {
  Keepalive::Config config;
  config.time = time;
  return config;
}

class HeartbeatTest : public ::testing::Test {
 protected:
  // Receive() counts a packet that arrives over a path. Send() counts a frame
  // that is sent on a stream.
  void Receive() { ++counters_.inputs; }
  void Send() { ++counters_.stream_frames_sent; }

  Heartbeat heartbeat_{absl::Seconds(20), Keepalive::Config()};
  session::Counters counters_;
};

TEST_F(HeartbeatTest, ZeroNeverBeats) {
  Heartbeat none(absl::ZeroDuration(), Every(absl::Seconds(1)));
  EXPECT_FALSE(none.enabled());
  Receive();
  EXPECT_EQ(none.OnUse(counters_), Action::kNone);
}

TEST_F(HeartbeatTest, IsAtLeastAsFrequentAsKeepalive) {
  EXPECT_EQ(heartbeat_.interval(), absl::Seconds(20));
  EXPECT_EQ(Heartbeat(absl::Seconds(20), Every(absl::Seconds(5))).interval(),
            absl::Seconds(5));
  EXPECT_EQ(Heartbeat(absl::Seconds(20), Every(absl::Seconds(60))).interval(),
            absl::Seconds(20));
  EXPECT_EQ(
      Heartbeat(absl::Seconds(20), Every(absl::Milliseconds(1))).interval(),
      absl::Milliseconds(10));
  EXPECT_EQ(
      Heartbeat(absl::Seconds(20), Every(absl::ZeroDuration())).interval(),
      absl::Milliseconds(10));
}

// Tests the first use of a path. No heartbeat is due, because the frames that
// set up the path have just passed over the lifeline.
TEST_F(HeartbeatTest, FirstUseOnlyStartsTheTimer) {
  Receive();
  EXPECT_EQ(heartbeat_.OnUse(counters_), Action::kStartTimer);
}

TEST_F(HeartbeatTest, BeatsAtEachIntervalOfUse) {
  Receive();
  ASSERT_EQ(heartbeat_.OnUse(counters_), Action::kStartTimer);
  Send();
  EXPECT_TRUE(heartbeat_.OnTimer(counters_));
  Receive();
  EXPECT_TRUE(heartbeat_.OnTimer(counters_));
}

TEST_F(HeartbeatTest, StopsWhereNothingHappens) {
  Receive();
  ASSERT_EQ(heartbeat_.OnUse(counters_), Action::kStartTimer);
  EXPECT_FALSE(heartbeat_.OnTimer(counters_));
  EXPECT_EQ(heartbeat_.OnUse(counters_), Action::kNone);
}

// Tests a use after a pause. A heartbeat is due immediately, because the
// lifeline may have been silent for as long as a proxy allows.
TEST_F(HeartbeatTest, BeatsAtOnceWhenUseBeginsAgain) {
  Receive();
  ASSERT_EQ(heartbeat_.OnUse(counters_), Action::kStartTimer);
  ASSERT_FALSE(heartbeat_.OnTimer(counters_));
  Send();
  EXPECT_EQ(heartbeat_.OnUse(counters_), Action::kBeat);
  EXPECT_FALSE(heartbeat_.OnTimer(counters_));
}

}  // namespace
}  // namespace connection
}  // namespace penstock
