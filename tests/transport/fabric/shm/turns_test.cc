// Tests that a connection with many large messages does not keep a poller from
// serving other connections.

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int kGreedyMessages = 16;

class Polled : public progress::Pollable {
 public:
  explicit Polled(Endpoint* endpoint) : endpoint_(endpoint) {}
  bool Poll() override { return endpoint_->Poll(); }
  bool HasInput() const override { return endpoint_->HasInput(); }
  void SetArmed(bool armed) override { endpoint_->SetArmed(armed); }

 private:
  Endpoint* const endpoint_;
};

class ShmTurns : public testing::Test {
 protected:
  ShmTurns() {
    Options options;
    options.arena = Arena::Create(64 * kMiB);
    fabric_ = absl::make_unique<ShmFabric>(options);
    greedy_ = MakePair(fabric_.get(), fabric_.get());
    polite_ = MakePair(fabric_.get(), fabric_.get());
  }
  void SetUp() override {
    ASSERT_NE(greedy_, nullptr);
    ASSERT_NE(polite_, nullptr);
    // Takes messages in place, as a session does.
    greedy_->listening.events.on_packet = [this] {
      const Exposure exposure = std::move(lent_.front());
      lent_.pop_front();
      EXPECT_TRUE(
          greedy_->listening.endpoint->Load(exposure.region).status().ok());
    };
  }

  void SendGreedily() {
    Endpoint* const sender = greedy_->connecting.endpoint.get();
    for (int i = 0; i < kGreedyMessages; ++i) {
      lent_.push_back(sender->Expose(PatternPayload(kMiB, 1), 1).value());
      ASSERT_TRUE(Send(sender, "announcement"));
    }
  }
  size_t served(const Pair& pair) {
    return pair.listening.events.packets.size();
  }

  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Pair> greedy_;
  std::unique_ptr<Pair> polite_;
  std::deque<Exposure> lent_;
};

TEST_F(ShmTurns, OneLargeMessageIsServedBetweenTwoSmallOnes) {
  progress::PollSet set(1);
  const auto greedy =
      set.Add(std::make_shared<Polled>(greedy_->listening.endpoint.get()));
  const auto polite =
      set.Add(std::make_shared<Polled>(polite_->listening.endpoint.get()));
  SendGreedily();
  for (size_t call = 1; call <= 5; ++call) {
    ASSERT_TRUE(Send(polite_->connecting.endpoint.get(), "call"));
    const size_t before = served(*greedy_);
    // Polls twice. On a slow machine, the first round may end after the greedy
    // connection.
    for (int i = 0; i < 2 && served(*polite_) < call; ++i) set.PollHot();
    EXPECT_EQ(served(*polite_), call);
    EXPECT_LE(served(*greedy_) - before, 2u);
  }
  while (set.PollHot()) {
  }
  EXPECT_EQ(served(*greedy_), static_cast<size_t>(kGreedyMessages));
  set.Remove(greedy);
  set.Remove(polite);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
