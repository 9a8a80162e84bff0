#include "transport/progress/left_input.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

constexpr std::chrono::milliseconds kTime(200);

TEST(LeftInput, NoteIsTakenOnce) {
  LeftInput left;
  EXPECT_FALSE(left.Take());
  left.Leave();
  EXPECT_TRUE(left.Take());
  EXPECT_FALSE(left.Take());
}

TEST(LeftInput, WhoFindsANoteDoesNotSleep) {
  LeftInput left;
  left.Leave();
  EXPECT_FALSE(left.BeginSleep());
  EXPECT_TRUE(left.BeginSleep()) << "the note was taken";
  left.EndSleep();
}

TEST(LeftInput, LeaverIsToldOfSleepersOnly) {
  LeftInput left;
  ASSERT_TRUE(left.BeginSleep());
  EXPECT_TRUE(left.Leave());
  left.EndSleep();
  EXPECT_FALSE(left.Leave());
  EXPECT_FALSE(left.BeginSleep()) << "takes the note";
  EXPECT_FALSE(left.Leave()) << "did not sleep";
}

TEST(LeftInput, NotesThatNobodyTakesAreTheLeaversOwn) {
  LeftInput left;
  EXPECT_TRUE(left.Leave());
}

// Tests a thread that leaves input while another thread goes to sleep.
TEST(LeftInput, NobodySleepsWhileThereIsANote) {
  constexpr int kMaxRounds = 20000;
  const auto end = std::chrono::steady_clock::now() + kTime;
  LeftInput left;
  ASSERT_TRUE(left.BeginSleep());
  left.EndSleep();
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::atomic<bool> slept{false};
  std::atomic<bool> over{false};
  std::thread sleeper([&] {
    for (int round = 1;; ++round) {
      while (begun < round) {
        if (over) return;
        std::this_thread::yield();
      }
      slept = left.BeginSleep();
      done = round;
    }
  });
  int lost = 0;
  for (int round = 1; round <= kMaxRounds; ++round) {
    if (std::chrono::steady_clock::now() > end) break;
    begun = round;
    const bool told = left.Leave();
    while (done < round) std::this_thread::yield();
    if (slept && !told) ++lost;
    if (slept) left.EndSleep();
    left.Take();
  }
  over = true;
  sleeper.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace progress
}  // namespace penstock
