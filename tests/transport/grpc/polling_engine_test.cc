// Tests how a thread that waits in gRPC polls Penstock's paths. The test adds
// its own pollable to the process's PollSet.

#include "transport/grpc/polling/polling_engine.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "tests/transport/base/set_clock.h"
#include "transport/grpc/polling/before_wait.h"
#include "transport/grpc/polling/left_input.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace core {
namespace {

using Clock = std::chrono::system_clock;

class FakePath : public progress::Pollable {
 public:
  bool Poll() override {
    input = false;
    ++polls;
    if (on_poll) on_poll();
    return true;
  }
  bool HasInput() const override {
    ++looks;
    if (on_look) on_look();
    return input;
  }
  void SetArmed(bool value) override {
    armed = value;
    if (value && on_armed) on_armed();
  }

  std::atomic<bool> input{false};
  std::atomic<bool> armed{false};
  std::atomic<int> polls{0};
  mutable std::atomic<int> looks{0};
  std::function<void()> on_poll;
  std::function<void()> on_armed;
  std::function<void()> on_look;
};

class PollingEngineTest : public testing::Test {
 protected:
  PollingEngineTest() : slot_(progress::PollSet::Get()->Add(path_)) {}
  ~PollingEngineTest() override {
    progress::PollSet::Get()->Remove(slot_);
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Delivers an event immediately to the thread that waits for the queue.
  void Complete() {
    alarm_.Set(&queue_, Clock::now() - std::chrono::seconds(1), this);
  }
  grpc::CompletionQueue::NextStatus Wait(std::chrono::milliseconds time) {
    void* tag = nullptr;
    bool ok = false;
    return queue_.AsyncNext(&tag, &ok, Clock::now() + time);
  }

  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  const std::shared_ptr<FakePath> path_ = std::make_shared<FakePath>();
  const progress::PollSet::SlotId slot_;
};

TEST_F(PollingEngineTest, WhoWaitsPolls) {
  ASSERT_TRUE(PollingIsWrapped());
  path_->input = true;
  path_->on_poll = [this] { Complete(); };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(path_->polls, 1);
  EXPECT_TRUE(path_->armed) << "nobody spins any more";
}

// Tests a thread that returns with its completion while others sleep. The peer
// has written before the last spinning thread armed the path, and so rings no
// doorbell. The returning thread must poll once more, because nobody else polls
// the path.
TEST_F(PollingEngineTest, WhoLeavesWithACompletionTakesInWhatCameMeanwhile) {
  ASSERT_TRUE(LeftInputOfProcess()->BeginSleep());
  path_->input = true;
  path_->on_poll = [this] {
    if (path_->polls == 1) Complete();
  };
  path_->on_armed = [this] {
    if (path_->polls == 1) path_->input = true;
  };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(path_->polls, 2);
  EXPECT_FALSE(path_->input);
  LeftInputOfProcess()->EndSleep();
}

// Tests a path that always has input, like that of a server whose clients never
// stop writing. The waiting thread must return with its completion. Afterwards
// a thread of gRPC must poll the path for the sleeping threads.
TEST_F(PollingEngineTest, WhoLeavesABusyPathDoesNotPollItForEver) {
  ASSERT_TRUE(LeftInputOfProcess()->BeginSleep());
  // A shared counter. Other threads may poll once more while this test ends.
  auto polls_of_others = std::make_shared<std::atomic<int>>(0);
  const std::thread::id self = std::this_thread::get_id();
  path_->input = true;
  path_->on_poll = [this, self, polls_of_others] {
    if (path_->polls == 1) Complete();
    if (std::this_thread::get_id() != self) ++*polls_of_others;
    path_->input = *polls_of_others < 3;
  };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  const auto end = Clock::now() + std::chrono::seconds(10);
  // Also waits for the count. During each poll, the path seems empty for a
  // moment.
  while ((*polls_of_others < 3 || path_->input) && Clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(path_->input);
  EXPECT_GE(*polls_of_others, 3);
  LeftInputOfProcess()->EndSleep();
}

// Tests a thread that is about to sleep. The peer has written before that
// thread armed the path.
TEST_F(PollingEngineTest, WhoGoesToSleepTakesInWhatCameMeanwhile) {
  path_->on_armed = [this] {
    if (path_->polls == 0) path_->input = true;
  };
  path_->on_poll = [this] { Complete(); };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(path_->polls, 1);
}

// Tests that a real-time thread sleeps. The peer may wait for this core, and
// only a sleep releases the core.
TEST_F(PollingEngineTest, ARealTimeThreadSleeps) {
  std::thread([&] {
    sched_param param = {};
    param.sched_priority = sched_get_priority_min(SCHED_FIFO);
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
      GTEST_SKIP() << "may not become a real-time thread";
    }
    path_->looks = 0;
    EXPECT_EQ(Wait(std::chrono::milliseconds(1)),
              grpc::CompletionQueue::TIMEOUT);
    // Limits the number of polls. A spin of 50 us would make hundreds.
    EXPECT_LE(path_->looks, 20);
  }).join();
}

class CountedWork : public BeforeWait {
 public:
  void OnWait() override { ++runs; }
  int runs = 0;
};

TEST_F(PollingEngineTest, WorkThatWasPutOffRunsOnceBeforeTheThreadWaits) {
  const auto work = std::make_shared<CountedWork>();
  BeforeWait::Set(work);
  path_->input = true;
  path_->on_poll = [&] {
    EXPECT_EQ(work->runs, 1);
    Complete();
  };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  path_->input = true;
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(work->runs, 1);
}

TEST_F(PollingEngineTest, WorkOfAnotherThreadOrOfThePastDoesNotRun) {
  auto work = std::make_shared<CountedWork>();
  const auto others = std::make_shared<CountedWork>();
  std::thread([&others] { BeforeWait::Set(others); }).join();
  BeforeWait::Set(work);
  work = nullptr;
  path_->input = true;
  path_->on_poll = [this] { Complete(); };
  EXPECT_EQ(Wait(std::chrono::seconds(10)), grpc::CompletionQueue::GOT_EVENT);
  EXPECT_EQ(others->runs, 0);
}

// Sets the clock back, which must not prolong the spin.
TEST_F(PollingEngineTest, ClockThatIsSetBackDoesNotKeepItSpinning) {
  path_->input = true;
  path_->on_poll = [] { SetClockBy(-absl::Hours(1)); };
  alarm_.Set(&queue_, Clock::now() + std::chrono::seconds(10), this);
  EXPECT_EQ(Wait(std::chrono::milliseconds(1)), grpc::CompletionQueue::TIMEOUT);
  EXPECT_EQ(path_->polls, 1);
  SetClockBy(absl::ZeroDuration());
  alarm_.Cancel();
}

// Moves the stopped clock on, if the test does not do so for 10 seconds. A wait
// whose path nobody polls would otherwise never end.
class ClockGuard {
 public:
  ~ClockGuard() {
    is_over_ = true;
    thread_.join();
  }
  bool has_moved() const { return has_moved_; }

 private:
  void Guard() {
    // Counts the kernel's time, because the clock may be stopped.
    constexpr int kPauseMs = 10;
    for (int ms = 0; !is_over_; ms += kPauseMs) {
      poll(nullptr, 0, kPauseMs);
      if (ms < 10 * 1000) continue;
      has_moved_ = true;
      MoveSteadyClockBy(absl::Seconds(1));
    }
  }

  std::atomic<bool> is_over_{false};
  std::atomic<bool> has_moved_{false};
  std::thread thread_{[this] { Guard(); }};
};

// Tests slow rounds of looks, as at many sockets. Each spin but the first of
// the thread exceeds its time by one round at most. Runs last, because it stops
// the clock. Otherwise a yield on a busy machine would end a spin, or all spins
// for a while.
TEST_F(PollingEngineTest, SlowRoundsDoNotProlongASpin) {
  StopSteadyClock();
  MoveSteadyClockBy(absl::Minutes(1));  // beyond a rest after earlier spins
  const ClockGuard guard;
  path_->on_look = [] { MoveSteadyClockBy(absl::Milliseconds(1)); };
  int spins = 0, most = 0;
  path_->on_armed = [&] {
    const int looks = path_->looks.exchange(0);
    if (++spins > 1) most = std::max(most, looks);
  };
  for (int i = 0; i < 10 && spins < 3 && !guard.has_moved(); ++i) {
    EXPECT_EQ(Wait(std::chrono::milliseconds(1)),
              grpc::CompletionQueue::TIMEOUT);
  }
  EXPECT_FALSE(guard.has_moved()) << "nobody polled the path";
  EXPECT_GE(spins, 3);
  EXPECT_LE(most, 2) << "one round, and one look while arming";
  path_->on_armed = nullptr;
}

}  // namespace
}  // namespace core
}  // namespace penstock
