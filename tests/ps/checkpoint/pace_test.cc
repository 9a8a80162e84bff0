#include "ps/checkpoint/pace.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock::ps::checkpoint {
namespace {

// A simulated thread. The test sets its processor time and its pushes.
struct FakeThread {
  absl::Duration worked;
  absl::Duration slept;
  uint64_t pushes = 0;

  Pace MakePace(double share) {
    return Pace(share, [this] { return pushes; },
                {[this] { return worked; },
                 [this](absl::Duration time) { slept += time; }});
  }
  void WorkAndPush(absl::Duration time) {
    worked += time;
    ++pushes;
  }
};

TEST(PaceTest, WorksForItsShareOfTheTime) {
  for (const double share : {0.05, 0.2, 0.5, 0.9}) {
    FakeThread thread;
    Pace pace = thread.MakePace(share);
    for (int i = 0; i < 10000; ++i) {
      thread.WorkAndPush(absl::Microseconds(i % 700));
      pace.Rest();
    }
    const double all = absl::ToDoubleSeconds(thread.worked) / share;
    EXPECT_NEAR(absl::ToDoubleSeconds(thread.worked + thread.slept), all,
                0.01 * all)
        << share;
  }
}

TEST(PaceTest, NeverRestsIfAllOfTheTimeIsItsShare) {
  for (const double share : {1.0, 6.4}) {
    FakeThread thread;
    Pace pace = thread.MakePace(share);
    thread.WorkAndPush(absl::Seconds(10));
    pace.Rest();
    EXPECT_EQ(thread.slept, absl::ZeroDuration()) << share;
  }
}

TEST(PaceTest, DoesNotRestWhileNobodyPushes) {
  FakeThread thread;
  Pace pace = thread.MakePace(0.5);
  thread.worked += absl::Milliseconds(50);
  pace.Rest();
  EXPECT_EQ(thread.slept, absl::ZeroDuration());
  thread.WorkAndPush(absl::Milliseconds(20));
  pace.Rest();
  EXPECT_EQ(thread.slept, absl::Milliseconds(20)) << "for the last piece only";
  thread.worked += absl::Milliseconds(50);
  pace.Rest();
  EXPECT_EQ(thread.slept, absl::Milliseconds(20));
}

TEST(PaceTest, OwesNothingForWhatWasDoneInHaste) {
  FakeThread thread;
  Pace pace = thread.MakePace(0.5);
  thread.WorkAndPush(absl::Milliseconds(100));
  pace.Hurry();
  thread.WorkAndPush(absl::Milliseconds(10));
  pace.Rest();
  EXPECT_EQ(thread.slept, absl::Milliseconds(10));
}

// Tests the limit of a rest. Even after a slow piece of work, a caller that
// waits or cancels must not wait long.
TEST(PaceTest, ARestHasALimit) {
  FakeThread thread;
  Pace pace = thread.MakePace(0.01);
  thread.WorkAndPush(absl::Seconds(10));
  pace.Rest();
  EXPECT_EQ(thread.slept, Pace::kLongest);
}

TEST(PaceTest, TheThreadsOwnTimeIsWhatCounts) {
  const Pace::System system = Pace::RealSystem();
  const absl::Duration before = system.processor_time();
  system.sleep(absl::Milliseconds(100));
  EXPECT_LT(system.processor_time() - before, absl::Milliseconds(100));
  volatile uint64_t sum = 0;
  for (int i = 0; i < 1000000; ++i) sum = sum + i;
  EXPECT_GT(system.processor_time(), before);
}

}  // namespace
}  // namespace penstock::ps::checkpoint
