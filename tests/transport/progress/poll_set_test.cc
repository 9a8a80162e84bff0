#include "transport/progress/poll_set.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

class FakePollable : public Pollable {
 public:
  bool Poll() override {
    ++polls;
    const bool found = input.exchange(false);
    if (on_poll) on_poll();
    return found && !finds_nothing;
  }
  bool HasInput() const override { return input; }
  void SetArmed(bool value) override { armed = value; }

  std::atomic<bool> input{false};
  std::atomic<bool> armed{false};
  std::atomic<int> polls{0};
  bool finds_nothing = false;  // HasInput() promised too much
  std::function<void()> on_poll;
};

TEST(PollSet, PollsOnlyWhatHasInput) {
  PollSet set(1);
  auto one = std::make_shared<FakePollable>();
  auto other = std::make_shared<FakePollable>();
  set.Add(one);
  set.Add(other);
  EXPECT_FALSE(set.PollAll());
  other->input = true;
  EXPECT_TRUE(set.PollAll());
  EXPECT_FALSE(set.PollAll());
  EXPECT_EQ(one->polls, 0);
  EXPECT_EQ(other->polls, 1);
}

TEST(PollSet, ArmedExactlyWhileNobodySpins) {
  PollSet set(2);
  auto early = std::make_shared<FakePollable>();
  set.Add(early);
  EXPECT_TRUE(early->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_FALSE(early->armed);
  auto late = std::make_shared<FakePollable>();
  late->armed = true;
  set.Add(late);
  EXPECT_FALSE(late->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_FALSE(set.EndSpin());
  EXPECT_FALSE(early->armed);
  EXPECT_FALSE(set.EndSpin());
  EXPECT_TRUE(early->armed);
  EXPECT_TRUE(late->armed);
}

TEST(PollSet, SpinnersAreBounded) {
  PollSet set(2);
  EXPECT_TRUE(set.BeginSpin());
  EXPECT_TRUE(set.BeginSpin());
  EXPECT_FALSE(set.BeginSpin());
  set.EndSpin();
  EXPECT_TRUE(set.BeginSpin());
}

TEST(PollSet, LastSpinnerIsToldOfInput) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  set.BeginSpin();
  set.BeginSpin();
  pollable->input = true;
  EXPECT_FALSE(set.EndSpin());  // the other one sees it
  EXPECT_TRUE(set.EndSpin());
}

TEST(PollSet, RemovedIsReleasedAtOnceAndItsSlotUsedAgain) {
  PollSet set(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<PollSet::SlotId> ids;
    std::vector<std::weak_ptr<FakePollable>> weak;
    for (int i = 0; i < 100; ++i) {  // several blocks
      auto pollable = std::make_shared<FakePollable>();
      pollable->input = true;
      weak.push_back(pollable);
      ids.push_back(set.Add(pollable));
      EXPECT_LT(ids.back(), 100u);
    }
    EXPECT_TRUE(set.PollAll());
    for (const auto& pollable : weak) EXPECT_EQ(pollable.lock()->polls, 1);
    for (PollSet::SlotId id : ids) set.Remove(id);
    for (const auto& pollable : weak) EXPECT_TRUE(pollable.expired());
    EXPECT_FALSE(set.PollAll());
  }
}

TEST(PollSet, PollableMayRemoveItself) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  std::weak_ptr<FakePollable> weak = pollable;
  const PollSet::SlotId id = set.Add(pollable);
  pollable->input = true;
  pollable->on_poll = [&set, &weak, id] {
    set.Remove(id);
    EXPECT_FALSE(weak.expired());
  };
  pollable.reset();
  EXPECT_TRUE(set.PollAll());
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(set.PollAll());
}

TEST(PollSet, WhoMissesABusySlotHasItLookedAtAgain) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  pollable->input = true;
  pollable->finds_nothing = true;
  pollable->on_poll = [&set, &pollable] {
    if (pollable->polls > 1) return;
    // This thread will find nothing and sleep. More comes now, and who is woken
    // for it finds the slot taken.
    std::thread([&set, &pollable] {
      pollable->input = true;
      EXPECT_FALSE(set.PollAll());
    }).join();
  };
  EXPECT_FALSE(set.PollAll());
  EXPECT_EQ(pollable->polls, 2);
}

// So many spins that what had no input meanwhile is cold.
void SpinLong(PollSet* set) {
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(set->BeginSpin());
    set->PollAll();
    set->EndSpin();
  }
}

TEST(PollSet, WhatHadNoInputForLongStaysArmedAndIsPolledSeldom) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  SpinLong(&set);
  EXPECT_TRUE(pollable->armed);
  ASSERT_TRUE(set.BeginSpin());
  EXPECT_TRUE(pollable->armed);
  pollable->input = true;
  EXPECT_FALSE(set.PollHot());
  EXPECT_TRUE(set.PollAll());
  EXPECT_FALSE(pollable->armed);  // hot again, and there is a spinner
  pollable->input = true;
  EXPECT_TRUE(set.PollHot());
  set.EndSpin();
  EXPECT_TRUE(pollable->armed);
}

TEST(PollSet, WhatHasInputNowAndThenStaysHot) {
  PollSet set(1);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  for (int i = 0; i < 20; ++i) {
    pollable->input = true;
    for (int k = 0; k < 100; ++k) {
      ASSERT_TRUE(set.BeginSpin());
      EXPECT_FALSE(pollable->armed);
      set.PollHot();
      set.EndSpin();
    }
    EXPECT_FALSE(pollable->input);
  }
}

TEST(PollSet, WhoTakesItForColdWhileOthersSpinIsToldOfInput) {
  PollSet set(2);
  auto pollable = std::make_shared<FakePollable>();
  set.Add(pollable);
  ASSERT_TRUE(set.BeginSpin());
  // HasInput() that nobody takes in: as if it came between poll and arming.
  pollable->input = true;
  bool told = false;
  for (int i = 0; i < 2000 && !told; ++i) {
    ASSERT_TRUE(set.BeginSpin());
    told = set.EndSpin();
  }
  EXPECT_TRUE(told);
  EXPECT_TRUE(pollable->armed);
}

// A peer over shared memory: `sent` is its ring's head; a doorbell counts and
// wakes. Both sides fence as the real ones do.
class StressPeer : public Pollable {
 public:
  bool Poll() override {
    std::lock_guard<std::mutex> lock(mu_);
    const int64_t now = sent_.load(std::memory_order_acquire);
    const bool any = consumed_.load(std::memory_order_relaxed) != now;
    consumed_.store(now, std::memory_order_release);
    return any;
  }
  bool HasInput() const override {
    return sent_.load(std::memory_order_acquire) !=
           consumed_.load(std::memory_order_relaxed);
  }
  void SetArmed(bool armed) override {
    armed_.store(armed, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  // True: ring.
  bool Send() {
    sent_.fetch_add(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return armed_.load(std::memory_order_relaxed);
  }
  int64_t consumed() const { return consumed_.load(std::memory_order_acquire); }

 private:
  std::mutex mu_;
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> consumed_{0};
  std::atomic<bool> armed_{false};
};

class Doorbell {
 public:
  void Ring() {
    std::lock_guard<std::mutex> lock(mu_);
    rung_ = true;
    changed_.notify_one();
  }
  void Stop() {
    std::lock_guard<std::mutex> lock(mu_);
    stopped_ = true;
    changed_.notify_one();
  }
  // Waits for a ring after those that were taken. False: stopped.
  bool Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return stopped_ || rung_; });
    rung_ = false;
    return !stopped_;
  }

 private:
  // Not absl's, which ThreadSanitizer does not see through.
  std::mutex mu_;
  std::condition_variable changed_;
  bool rung_ = false;     // guarded by mu_
  bool stopped_ = false;  // guarded by mu_
};

// The loop of poll_set.h, with short spins so that each step is hit often.
void PollAndSleep(PollSet* set, Doorbell* bell) {
  do {
    while (set->PollAll()) {
    }
    if (!set->BeginSpin()) continue;
    do {
      for (int i = 0; i < 20; ++i) set->PollHot();
      set->PollAll();
    } while (set->EndSpin() && (set->PollAll(), set->BeginSpin()));
  } while (bell->Wait());
}

class PollSetStress : public testing::TestWithParam<int> {};

TEST_P(PollSetStress, NothingIsSleptOver) {
  PollSet set(GetParam());
  // The second is sent to so seldom that it becomes cold.
  std::shared_ptr<StressPeer> peers[2];
  for (auto& peer : peers) {
    peer = std::make_shared<StressPeer>();
    set.Add(peer);
  }
  Doorbell bells[2];
  std::thread pollers[2];
  for (int i = 0; i < 2; ++i) {
    pollers[i] = std::thread(PollAndSleep, &set, &bells[i]);
  }
  int64_t sent = 0;
  int64_t sent_each[2] = {};
  int64_t lost = 0;
  const absl::Time end = absl::Now() + absl::Seconds(2);
  while (lost == 0 && absl::Now() < end) {
    // One at a time and rung to one thread in turn: every loss is final.
    ++sent;
    const int to = sent % 2000 == 0;
    ++sent_each[to];
    if (peers[to]->Send()) bells[sent / 2 % 2].Ring();
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (peers[to]->consumed() != sent_each[to] && lost == 0) {
      std::this_thread::yield();
      if (absl::Now() > deadline) lost = sent;
    }
  }
  EXPECT_EQ(lost, 0) << "of " << sent;
  for (Doorbell& bell : bells) bell.Stop();
  for (std::thread& poller : pollers) poller.join();
}

INSTANTIATE_TEST_SUITE_P(Spinners, PollSetStress, testing::Values(1, 2));

TEST(PollSet, AddAndRemoveWhileOthersPoll) {
  PollSet set(4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> pollers;
  for (int i = 0; i < 2; ++i) {
    pollers.emplace_back([&set, &stop] {
      while (!stop) {
        if (!set.BeginSpin()) continue;
        for (int k = 0; k < 10; ++k) set.PollAll();
        set.EndSpin();
      }
    });
  }
  const absl::Time end = absl::Now() + absl::Seconds(1);
  while (absl::Now() < end) {
    std::vector<PollSet::SlotId> ids;
    for (int i = 0; i < 40; ++i) {
      auto pollable = std::make_shared<FakePollable>();
      pollable->input = true;
      ids.push_back(set.Add(std::move(pollable)));
    }
    for (PollSet::SlotId id : ids) set.Remove(id);
  }
  stop = true;
  for (std::thread& poller : pollers) poller.join();
}

}  // namespace
}  // namespace progress
}  // namespace penstock
