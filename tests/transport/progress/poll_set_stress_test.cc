// Tests threads that poll, sleep and wake up, and add and remove pollables, all
// at the same time.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace progress {
namespace {

// A simulated peer over shared memory. `sent_` is the head of its ring, and
// Doorbell is its doorbell. Both sides have the fences of the real code.
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

  // Returns true if the sender must ring.
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
  // Waits for the next ring. Returns false if the bell was stopped.
  bool Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return stopped_ || rung_; });
    rung_ = false;
    return !stopped_;
  }

 private:
  // Guards the bell. Not absl::Mutex, which ThreadSanitizer does not
  // understand.
  std::mutex mu_;
  std::condition_variable changed_;
  bool rung_ = false;     // guarded by mu_
  bool stopped_ = false;  // guarded by mu_
};

// Runs the loop of poll_set.h, with short spins, so that each step is hit
// often.
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
  // Two peers. The test sends to the second peer so rarely that its pollable
  // becomes cold.
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
    // Sends one message at a time. Sends to the threads alternately, so that
    // any lost message stops the test.
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

// Counts how often two threads were in Poll() at once.
class OnceAtATime : public Pollable {
 public:
  explicit OnceAtATime(std::atomic<int>* overlaps) : overlaps_(overlaps) {}
  bool Poll() override {
    if (inside_.exchange(true)) ++*overlaps_;
    std::this_thread::yield();  // other threads see that there is input
    const bool found = input_.exchange(false);
    inside_ = false;
    return found;
  }
  bool HasInput() const override { return input_; }
  void SetArmed(bool) override {}

 private:
  std::atomic<int>* const overlaps_;
  std::atomic<bool> inside_{false};
  std::atomic<bool> input_{true};
};

// Returns true if all pollables that still exist are polled within ten seconds.
bool AwaitPolled(const std::vector<std::weak_ptr<OnceAtATime>>& pollables) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  for (const auto& weak : pollables) {
    while (auto pollable = weak.lock()) {
      if (!pollable->HasInput()) break;
      if (absl::Now() > deadline) return false;
      std::this_thread::yield();
    }
  }
  return true;
}

TEST(PollSet, AddAndRemoveWhileOthersPoll) {
  PollSet set(4);
  std::atomic<int> overlaps{0};
  std::vector<std::weak_ptr<OnceAtATime>> all;
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
  bool were_polled = true;
  for (int round = 0; round < 200 && were_polled; ++round) {
    std::vector<PollSet::SlotId> ids;
    for (int i = 0; i < 40; ++i) {
      auto pollable = std::make_shared<OnceAtATime>(&overlaps);
      all.push_back(pollable);
      ids.push_back(set.Add(std::move(pollable)));
    }
    // In every other round, the pollables are removed after they were polled.
    // In the other rounds, they are removed before or during the poll.
    if (round % 2 == 0) were_polled = AwaitPolled(all);
    for (PollSet::SlotId id : ids) set.Remove(id);
  }
  stop = true;
  for (std::thread& poller : pollers) poller.join();
  EXPECT_TRUE(were_polled);
  EXPECT_EQ(overlaps, 0);
  EXPECT_TRUE(set.empty());
  for (const auto& pollable : all) EXPECT_TRUE(pollable.expired());
}

}  // namespace
}  // namespace progress
}  // namespace penstock
