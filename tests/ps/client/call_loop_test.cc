// Tests that each start leads to one callback, one at a time, on any thread
// that runs the loop.

#include "ps/client/call_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

absl::Time In(absl::Duration time) { return base::SteadyNow() + time; }

// Blocks until a callback has run. Returns the thread that ran the callback.
std::thread::id BlockOn(CallLoop* loop) {
  std::thread::id ran_on;
  absl::Notification end;
  CallLoop::Turn turn(loop);
  loop->Post([&] {
    EXPECT_TRUE(loop->IsInCallback());
    ran_on = std::this_thread::get_id();
    end.Notify();
  });
  turn.Await(end);
  EXPECT_FALSE(loop->IsInCallback());
  return ran_on;
}

// Starts a callback without a Turn. Returns the thread that ran the callback.
std::thread::id RanOn(CallLoop* loop) {
  std::thread::id ran_on;
  absl::Notification end;
  loop->Post([&] {
    ran_on = std::this_thread::get_id();
    end.Notify();
  });
  EXPECT_TRUE(end.WaitForNotificationWithTimeout(kPatience));
  return ran_on;
}

TEST(CallLoopTest, WhoBlocksRunsItsCallback) {
  CallLoop loop;
  EXPECT_EQ(BlockOn(&loop), std::this_thread::get_id());
  EXPECT_EQ(BlockOn(&loop), std::this_thread::get_id());
}

TEST(CallLoopTest, WhoDoesNotBlockHasItRunByTheLoopsThread) {
  CallLoop loop;
  const std::thread::id thread = RanOn(&loop);
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(RanOn(&loop), thread);
}

TEST(CallLoopTest, ThreadLeavesTheLoopToWhoBlocksAgain) {
  CallLoop loop;
  RanOn(&loop);
  BlockOn(&loop);  // releases the thread, which may take a moment
  const absl::Time limit = In(kPatience);
  while (BlockOn(&loop) != std::this_thread::get_id()) {
    ASSERT_LT(base::SteadyNow(), limit);
  }
}

TEST(CallLoopTest, WhatATurnLeavesBehindGoesOn) {
  CallLoop loop;
  absl::Notification later;
  absl::Notification end;
  {
    CallLoop::Turn turn(&loop);
    loop.At(In(absl::Milliseconds(20)), [&] { later.Notify(); });
    loop.Post([&] { end.Notify(); });
    turn.Await(end);
  }
  EXPECT_TRUE(later.WaitForNotificationWithTimeout(kPatience));
}

TEST(CallLoopTest, WhoBlocksRunsWhatOthersHaveStarted) {
  CallLoop loop;
  absl::Notification other_ran;
  absl::Notification end;
  CallLoop::Turn turn(&loop);
  std::thread other([&] { loop.Post([&] { other_ran.Notify(); }); });
  other.join();
  loop.At(In(absl::Milliseconds(20)), [&] { end.Notify(); });
  turn.Await(end);
  EXPECT_TRUE(other_ran.HasBeenNotified());
}

TEST(CallLoopTest, StopEndsWhatATurnWaitsFor) {
  CallLoop loop;
  absl::Notification end;
  CallLoop::Turn turn(&loop);
  loop.At(absl::InfiniteFuture(), [&] { end.Notify(); });
  std::thread other([&loop] { loop.Stop(); });
  turn.Await(end);
  other.join();
}

TEST(CallLoopTest, EndsWhileNobodyRunsIt) {
  CallLoop never_used;
  CallLoop loop;
  BlockOn(&loop);
}

// Runs a random program of blocking threads, other threads, and callbacks that
// start callbacks.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  void Run() {
    auto loop = std::make_unique<CallLoop>();
    loop_ = loop.get();
    std::vector<std::thread> threads;
    const size_t count = 1 + random_() % 4;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([this, seed = random_()] { RunThread(seed); });
    }
    for (std::thread& thread : threads) thread.join();
    if (random_() % 2 == 0) loop_->Stop();
    loop = nullptr;
    EXPECT_EQ(ended_, started_);
  }

 private:
  void RunThread(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 100; ++i) {
      const uint64_t what = random() % 10;
      if (what < 5) {
        Block(&random);
      } else if (what < 9) {
        Start(random(), nullptr);
      } else {
        std::this_thread::yield();
      }
    }
  }

  void Block(std::mt19937_64* random) {
    absl::Notification end;
    CallLoop::Turn turn(loop_);
    const uint64_t others = (*random)() % 3;
    for (uint64_t i = 0; i < others; ++i) Start((*random)(), nullptr);
    Start((*random)(), &end);
    turn.Await(end);
    EXPECT_TRUE(end.HasBeenNotified());
  }

  // Starts a tree of callbacks. The last callback notifies `end`.
  void Start(uint64_t plan, absl::Notification* end) {
    ++started_;
    auto done = [this, plan, end] {
      EXPECT_FALSE(is_running_.exchange(true)) << "two callbacks at a time";
      EXPECT_TRUE(loop_->IsInCallback());
      const bool goes_on = plan % 3 == 0 && plan > 0;
      if (goes_on) Start(plan / 3, end);
      is_running_ = false;
      ++ended_;
      if (!goes_on && end != nullptr) end->Notify();
    };
    if (plan % 5 == 0) {
      loop_->At(In(absl::Microseconds(plan / 15 % 300)), std::move(done));
    } else {
      loop_->Post(std::move(done));
    }
  }

  std::mt19937_64 random_;
  std::atomic<uint64_t> started_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> is_running_{false};
  CallLoop* loop_ = nullptr;
};

TEST(CallLoopTest, EachStartIsAnsweredOnce) {
  RunEachSeed([](uint64_t seed) { Program(seed).Run(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 100);
}
