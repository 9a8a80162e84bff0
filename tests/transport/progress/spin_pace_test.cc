#include "transport/progress/spin_pace.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

// Makes rounds of `time` each, until a look is due. Returns the number of
// rounds.
int RoundsUntilLook(SpinPace* pace, absl::Duration time) {
  absl::Time now = absl::UnixEpoch();
  pace->Resume(now);
  int rounds = 1;
  for (; !pace->OnRound(); ++rounds) now += time;
  pace->Look(now + time);
  return rounds;
}

TEST(SpinPace, QuickRoundsAreManyBetweenLooks) {
  SpinPace pace;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RoundsUntilLook(&pace, absl::Nanoseconds(100)), 8);
  }
}

TEST(SpinPace, ALookFollowsEachSlowRound) {
  SpinPace pace;
  RoundsUntilLook(&pace, absl::Microseconds(20));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RoundsUntilLook(&pace, absl::Microseconds(20)), 1);
  }
}

TEST(SpinPace, RoundsBetweenLooksFillTheTime) {
  SpinPace pace;
  RoundsUntilLook(&pace, absl::Microseconds(3));
  EXPECT_EQ(RoundsUntilLook(&pace, absl::Microseconds(3)), 3);
}

// Tests one slow round among quick ones, for example because another program
// had the core.
TEST(SpinPace, RecoversAfterASlowRound) {
  SpinPace pace;
  RoundsUntilLook(&pace, absl::Milliseconds(4));
  EXPECT_EQ(RoundsUntilLook(&pace, absl::Nanoseconds(100)), 1);
  EXPECT_EQ(RoundsUntilLook(&pace, absl::Nanoseconds(100)), 8);
}

TEST(SpinPace, ClockThatStandsStillIsNoError) {
  SpinPace pace;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RoundsUntilLook(&pace, absl::ZeroDuration()), 8);
  }
}

}  // namespace
}  // namespace progress
}  // namespace penstock
