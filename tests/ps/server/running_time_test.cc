#include "ps/server/running_time.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kGap = RunningTime::kLongestGap;

class RunningTimeTest : public testing::Test {
 protected:
  // Returns the running time that has passed since the start.
  absl::Duration Passed() const { return running_.At(now_) - start_; }

  const absl::Time start_ = absl::UnixEpoch() + absl::Hours(1);
  absl::Time now_ = start_;
  RunningTime running_{start_};
};

TEST_F(RunningTimeTest, PassesLikeTheTimeWhileTheProcessRuns) {
  for (int i = 0; i < 1000; ++i) {
    now_ += kGap;
    running_.Beat(now_);
  }
  EXPECT_EQ(Passed(), 1000 * kGap);
  now_ += kGap / 3;
  EXPECT_EQ(Passed(), 1000 * kGap + kGap / 3);
}

TEST_F(RunningTimeTest, StandsStillDuringAStop) {
  now_ += absl::Hours(1);
  EXPECT_EQ(Passed(), kGap);
  running_.Beat(now_);
  EXPECT_EQ(Passed(), kGap);
  now_ += absl::Hours(1);  // the second stop immediately after the first
  EXPECT_EQ(Passed(), 2 * kGap);
}

TEST_F(RunningTimeTest, AdvancesAlsoWhenBeatsAreLate) {
  for (int i = 0; i < 100; ++i) {
    now_ += absl::Seconds(1);
    running_.Beat(now_);
  }
  EXPECT_EQ(Passed(), 100 * kGap);
}

// Tests threads that read the clock in one order and lock in another.
TEST_F(RunningTimeTest, NeverGoesBack) {
  running_.Beat(now_ + kGap);
  EXPECT_EQ(running_.At(now_), start_ + kGap);
  running_.Beat(now_);
  EXPECT_EQ(running_.At(now_ + 2 * kGap), start_ + 2 * kGap);
}

TEST_F(RunningTimeTest, SaysWhenToLookAgain) {
  EXPECT_EQ(running_.WhenAt(start_ + absl::Hours(1), now_),
            now_ + absl::Hours(1));
  EXPECT_EQ(running_.WhenAt(start_, now_), now_);
  EXPECT_EQ(running_.WhenAt(absl::InfiniteFuture(), now_),
            absl::InfiniteFuture());
  now_ += absl::Hours(1);
  EXPECT_EQ(running_.WhenAt(start_ + 3 * kGap, now_), now_ + 2 * kGap);
  // Never so soon that a thread would look all the time until the next beat.
  EXPECT_EQ(running_.WhenAt(start_ + kGap + absl::Nanoseconds(1), now_),
            now_ + RunningTime::kLeastWait);
}

TEST(RunningNowTest, PassesInAProcessThatRuns) {
  const absl::Time end = RunningNow() + absl::Milliseconds(300);
  EXPECT_LT(RunningNow(), end);
  while (RunningNow() < end) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_LE(WhenRunning(end), WhenRunning(end + absl::Seconds(1)));
}

}  // namespace
}  // namespace penstock::ps
