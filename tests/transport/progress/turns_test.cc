#include "transport/progress/turns.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

using Source = Turns::Source;

constexpr absl::Duration kInterval = absl::Nanoseconds(Turns::kIntervalNanos);
constexpr absl::Duration kTurn = absl::Nanoseconds(Turns::kTurnNanos);
constexpr absl::Duration kBound = absl::Nanoseconds(Turns::kBoundNanos);
constexpr absl::Duration kTick = absl::Nanoseconds(1);

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(Turns, FirstTurnIsDueAtOnceEvenAtTheClocksStart) {
  Turns turns;
  EXPECT_TRUE(turns.Take(Source::kSockets, absl::UnixEpoch()));
}

TEST(Turns, NextTurnIsDueAfterTheInterval) {
  Turns turns;
  ASSERT_TRUE(turns.Take(Source::kSockets, kNow));
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow));
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow + kInterval - kTick));
  EXPECT_TRUE(turns.Take(Source::kSockets, kNow + kInterval));
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow + 2 * kInterval - kTick));
}

TEST(Turns, EachSourceHasItsOwnTurns) {
  Turns turns;
  ASSERT_TRUE(turns.Take(Source::kSockets, kNow));
  EXPECT_TRUE(turns.Take(Source::kColdPaths, kNow));
  turns.MakeDue(Source::kColdPaths);
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow));
  EXPECT_TRUE(turns.Take(Source::kColdPaths, kNow));
}

TEST(Turns, SourceWithMoreToDoIsDueAtOnce) {
  Turns turns;
  ASSERT_TRUE(turns.Take(Source::kSockets, kNow));
  turns.MakeDue(Source::kSockets);
  EXPECT_TRUE(turns.Take(Source::kSockets, kNow));
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow));
}

// Tests a thread that has read the clock before another thread, but comes after
// it.
TEST(Turns, ThreadWithAnOlderTimeTakesNone) {
  Turns turns;
  ASSERT_TRUE(turns.Take(Source::kSockets, kNow));
  EXPECT_FALSE(turns.Take(Source::kSockets, kNow - kInterval));
}

TEST(Turns, OneOfManyThreadsTakesATurn) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 1000;
  Turns turns;
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        taken += turns.Take(Source::kSockets, kNow + turn * kInterval);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(taken, kTurns);
  EXPECT_GE(taken, 1);
}

// Threads that poll as polling_engine.cc does, in simulated time. The lengths
// of rounds and turns are between zero and the largest allowed length. In some
// simulations, sockets always have more work than fits into a turn.
class Simulation {
 public:
  Simulation(int threads, unsigned seed, bool floods)
      : random_(seed), floods_(floods), next_(threads, kNow) {}

  // Returns the longest time between two turns of a source.
  absl::Duration Run(absl::Duration time) {
    Note(Source::kSockets, kNow);
    Note(Source::kColdPaths, kNow);
    for (;;) {
      auto thread = std::min_element(next_.begin(), next_.end());
      if (*thread - kNow > time) break;
      *thread = Step(*thread);
    }
    return longest_;
  }

 private:
  absl::Time Step(absl::Time now) {
    if (turns_.Take(Source::kColdPaths, now)) Note(Source::kColdPaths, now);
    now += Between(absl::Nanoseconds(50), 2 * kTurn);  // a round
    if (!turns_.Take(Source::kSockets, now)) return now;
    Note(Source::kSockets, now);
    if (!floods_) return now + absl::Microseconds(1);
    turns_.MakeDue(Source::kSockets);
    return now + Between(kTurn, 2 * kTurn);
  }
  void Note(Source source, absl::Time now) {
    auto last = last_.find(source);
    if (last != last_.end()) longest_ = std::max(longest_, now - last->second);
    last_[source] = now;
  }
  // Returns a random time between the two, by a log-uniform distribution.
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    std::uniform_real_distribution<double> exponent(
        std::log(absl::ToDoubleNanoseconds(least)),
        std::log(absl::ToDoubleNanoseconds(most)));
    return absl::Nanoseconds(std::exp(exponent(random_)));
  }

  std::mt19937 random_;
  const bool floods_;
  std::vector<absl::Time> next_;  // the beginning of each thread's next round
  Turns turns_;
  std::map<Source, absl::Time> last_;
  absl::Duration longest_ = absl::ZeroDuration();
};

TEST(Turns, NoSourceWaitsLongerThanTheBound) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (int threads : {1, 2, 3, 8}) {
      for (bool floods : {false, true}) {
        Simulation simulation(threads, seed, floods);
        EXPECT_LE(simulation.Run(absl::Milliseconds(50)), kBound)
            << threads << " threads, seed " << seed << ", floods " << floods;
      }
    }
  }
}

}  // namespace
}  // namespace progress
}  // namespace penstock
