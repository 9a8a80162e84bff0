// Tests random programs: on one thread against a simple model, and on many
// threads against rules that hold in every order.

#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/rendezvous.h"

namespace penstock::tensor {
namespace {

using Received = Rendezvous::Received;

Tensor Number(int64_t value) { return *Tensor::Of<int64_t>({1}, {value}); }

int64_t ValueOf(const Tensor& tensor) { return (*tensor.flat<int64_t>())[0]; }

// The result of each wait by number: a value, or the negated code.
using Outcomes = std::map<int, int64_t>;

int64_t Ended(absl::StatusCode code) { return -static_cast<int64_t>(code); }

// A model of Rendezvous that consists of simple lists.
class Model {
 public:
  static constexpr size_t kMaxTensors = 4;
  static constexpr size_t kMaxWaiters = 4;

  absl::StatusCode Send(uint64_t step, int name, int64_t value,
                        uint32_t receivers) {
    if (ended_.count(step) > 0) return ended_[step];
    for (const Kept& kept : kept_) {
      if (kept.key == Key(step, name)) return absl::StatusCode::kAlreadyExists;
    }
    uint32_t served = 0;
    for (const Waiter& waiter : waiters_) {
      served += waiter.key == Key(step, name) ? 1 : 0;
    }
    if (served < receivers && kept_.size() == kMaxTensors) {
      return absl::StatusCode::kResourceExhausted;
    }
    uint32_t left = receivers;
    for (auto it = waiters_.begin(); it != waiters_.end() && left > 0;) {
      if (it->key != Key(step, name)) {
        ++it;
        continue;
      }
      outcomes_[it->number] = value;
      it = waiters_.erase(it);
      --left;
    }
    if (left > 0) kept_.push_back({Key(step, name), value, left});
    return absl::StatusCode::kOk;
  }

  void Receive(uint64_t step, int name, int number) {
    if (ended_.count(step) > 0) {
      outcomes_[number] = Ended(ended_[step]);
      return;
    }
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->key != Key(step, name)) continue;
      outcomes_[number] = it->value;
      if (--it->left == 0) kept_.erase(it);
      return;
    }
    if (waiters_.size() == kMaxWaiters) {
      outcomes_[number] = Ended(absl::StatusCode::kResourceExhausted);
    } else {
      waiters_.push_back({Key(step, name), number});
    }
  }

  bool Cancel(int number) {
    for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
      if (it->number != number) continue;
      outcomes_[number] = Ended(absl::StatusCode::kCancelled);
      waiters_.erase(it);
      return true;
    }
    return false;
  }

  void CancelStep(uint64_t step, absl::StatusCode code) {
    ended_.emplace(step, code);
    for (size_t i = waiters_.size(); i-- > 0;) {
      if (waiters_[i].key.first != step) continue;
      outcomes_[waiters_[i].number] = Ended(code);
      waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i].key.first == step) {
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  const Outcomes& outcomes() const { return outcomes_; }
  size_t tensors() const { return kept_.size(); }
  size_t waiters() const { return waiters_.size(); }

 private:
  using Key = std::pair<uint64_t, int>;
  struct Kept {
    Key key;
    int64_t value;
    uint32_t left;
  };
  struct Waiter {
    Key key;
    int number;
  };

  std::deque<Kept> kept_;
  std::deque<Waiter> waiters_;
  std::map<uint64_t, absl::StatusCode> ended_;
  Outcomes outcomes_;
};

RendezvousKey KeyOf(uint64_t step, int name) {
  return {step, absl::StrCat("t", name), "", ""};
}

TEST(RendezvousModel, RandomProgramsDoWhatTheModelDoes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Model model;
    Rendezvous::Options options;
    options.max_waiters = Model::kMaxWaiters;
    // Sets a budget with room for kMaxTensors small tensors with names of two
    // bytes.
    options.budget_bytes =
        Model::kMaxTensors * (Rendezvous::kEntryBytes + 2 + sizeof(int64_t));
    Outcomes outcomes;
    Rendezvous table(options);
    std::vector<uint64_t> waits;
    for (int i = 0; i < 300; ++i) {
      const uint64_t step = random() % 3 + static_cast<uint64_t>(i) / 100;
      const int name = static_cast<int>(random() % 3);
      const unsigned what = random() % 100;
      if (what < 45) {
        Rendezvous::SendOptions send;
        send.receivers = 1 + random() % 3;
        ASSERT_EQ(table.Send(KeyOf(step, name), Number(i), send).code(),
                  model.Send(step, name, i, send.receivers));
      } else if (what < 90) {
        const int number = static_cast<int>(waits.size());
        model.Receive(step, name, number);
        waits.push_back(table.Receive(
            KeyOf(step, name), [&outcomes, number](auto received) {
              ASSERT_EQ(outcomes.count(number), 0u);
              outcomes[number] = received.ok()
                                     ? ValueOf(received->tensor)
                                     : Ended(received.status().code());
            }));
      } else if (what < 98 && !waits.empty()) {
        const size_t number = random() % waits.size();
        ASSERT_EQ(table.Cancel(waits[number], absl::CancelledError("c")),
                  model.Cancel(static_cast<int>(number)));
      } else if (what >= 98) {
        model.CancelStep(step, absl::StatusCode::kAborted);
        ASSERT_TRUE(table.CancelStep(step, absl::AbortedError("a")).ok());
      }
      ASSERT_EQ(outcomes, model.outcomes()) << "after " << i;
      ASSERT_EQ(table.usage().tensors, model.tensors()) << "after " << i;
      ASSERT_EQ(table.usage().waiters, model.waiters()) << "after " << i;
    }
  }
}

// The observations of all threads, guarded by its own lock.
class Ledger {
 public:
  void Sent(const RendezvousKey& key, int64_t value, uint32_t receivers) {
    const std::lock_guard<std::mutex> lock(mu_);
    sent_[value] = {key, receivers};
  }
  void Got(const RendezvousKey& key, int64_t value) {
    const std::lock_guard<std::mutex> lock(mu_);
    got_.emplace_back(key, value);
  }
  void CallEnded() {
    const std::lock_guard<std::mutex> lock(mu_);
    ++ended_;
  }

  // Checks that each tensor came under its own key, and to no more receivers
  // than it has.
  void Check(int receives) {
    const std::lock_guard<std::mutex> lock(mu_);
    EXPECT_EQ(ended_, receives);
    std::map<int64_t, uint32_t> times;
    for (const auto& got : got_) {
      const auto sent = sent_.find(got.second);
      ASSERT_NE(sent, sent_.end()) << "a tensor that nobody has sent";
      EXPECT_EQ(sent->second.first, got.first);
      EXPECT_LE(++times[got.second], sent->second.second);
    }
    EXPECT_GT(got_.size(), 0u);
  }

 private:
  std::mutex mu_;
  std::map<int64_t, std::pair<RendezvousKey, uint32_t>> sent_;
  std::vector<std::pair<RendezvousKey, int64_t>> got_;
  int ended_ = 0;
};

class RacingThread {
 public:
  RacingThread(Rendezvous* table, Ledger* ledger, unsigned seed, int64_t base)
      : table_(table), ledger_(ledger), random_(seed), next_value_(base) {}

  void Run() {
    for (int i = 0; i < 2000; ++i) {
      const RendezvousKey key =
          KeyOf(random_() % 4, static_cast<int>(random_() % 3));
      const unsigned what = random_() % 1000;
      if (what < 400) {
        Send(key);
      } else if (what < 850) {
        Receive(key);
      } else if (what < 999) {
        if (!waits_.empty()) {
          table_->Cancel(waits_[random_() % waits_.size()],
                         absl::CancelledError("c"));
        }
      } else {
        EXPECT_TRUE(table_->CancelStep(key.step, absl::AbortedError("a")).ok());
      }
    }
  }

  int receives() const { return static_cast<int>(waits_.size()); }

 private:
  void Send(const RendezvousKey& key) {
    const int64_t value = next_value_++;
    Rendezvous::SendOptions options;
    options.receivers = 1 + random_() % 3;
    // Records the tensor before sending it, because a receiver may be faster
    // than this thread.
    ledger_->Sent(key, value, options.receivers);
    table_->Send(key, Number(value), options).IgnoreError();
  }

  void Receive(const RendezvousKey& key) {
    waits_.push_back(
        table_->Receive(key, [ledger = ledger_, key](auto received) {
          if (received.ok()) ledger->Got(key, ValueOf(received->tensor));
          ledger->CallEnded();
        }));
  }

  Rendezvous* const table_;
  Ledger* const ledger_;
  std::mt19937 random_;
  int64_t next_value_;
  std::vector<uint64_t> waits_;
};

TEST(RendezvousModel, RacingThreadsLoseAndDoubleNothing) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Ledger ledger;
    Rendezvous::Options options;
    options.max_ended_steps = 2;  // makes cancelled steps usable again
    Rendezvous table(options);
    std::deque<RacingThread> racers;
    for (unsigned i = 0; i < 4; ++i) {
      racers.emplace_back(&table, &ledger, seed * 4 + i, 1000000 * i);
    }
    std::vector<std::thread> threads;
    threads.reserve(racers.size());
    for (RacingThread& racer : racers) {
      threads.emplace_back([&racer] { racer.Run(); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(table.CancelAll(absl::UnavailableError("end")).ok());
    int receives = 0;
    for (const RacingThread& racer : racers) receives += racer.receives();
    ledger.Check(receives);
    EXPECT_EQ(table.usage().bytes, 0u);
    EXPECT_EQ(table.usage().tensors, 0u);
    EXPECT_EQ(table.usage().waiters, 0u);
  }
}

}  // namespace
}  // namespace penstock::tensor
