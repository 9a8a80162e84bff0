// Tests completions: their order for their owner, and wake-ups for a sleeping
// thread.

#include "transport/fabric/verbs/completions.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

bool IsReadable(int fd) {
  pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

// A connected pair. The tested queue is the client's.
class CompletionsTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeVerbs& verbs = pair_.verbs;
    verbs.DestroyCq(pair_.client.cq);
    verbs.DestroyCompChannel(pair_.client.channel);
    completions_ = *Completions::Create(&verbs, pair_.client.device, 64);
    pair_.client.cq = completions_->queue();
    pair_.Connect();
  }
  void TearDown() override {
    if (completions_ != nullptr) End();
    EXPECT_TRUE(pair_.verbs.misuse().empty());
    pair_.client.channel = pair_.verbs.CreateCompChannel(pair_.client.device);
    pair_.client.cq =
        pair_.verbs.CreateCq(pair_.client.device, 1, nullptr, nullptr, 0);
  }
  void End() {
    pair_.DropQp(&pair_.client);
    completions_.reset();
  }
  // Posts a request that causes one completion. At most FakePair::kSends may
  // wait to be taken.
  void Post(ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    ASSERT_EQ(pair_.Post(&pair_.client, opcode, FakePair::Part(pair_.client),
                         reinterpret_cast<uint64_t>(pair_.server.memory.data()),
                         pair_.server.mr->rkey),
              0);
  }
  bool wakes() const {
    for (int fd : completions_->wakeup_fds()) {
      if (IsReadable(fd)) return true;
    }
    return false;
  }

  FakePair pair_;
  std::unique_ptr<Completions> completions_;
};

TEST_F(CompletionsTest, EmptyQueueHasNoInput) {
  ibv_wc wc;
  EXPECT_FALSE(completions_->HasInput());
  EXPECT_EQ(completions_->Take(&wc, 1), 0);
}

TEST_F(CompletionsTest, LookingTakesNothingAway) {
  Post(IBV_WR_RDMA_WRITE);
  Post(IBV_WR_RDMA_READ);
  EXPECT_TRUE(completions_->HasInput());
  EXPECT_TRUE(completions_->HasInput());
  Post(IBV_WR_RDMA_WRITE);
  ibv_wc wc[8];
  // Takes only the earlier completions. Completions that have arrived since
  // belong to the next call.
  ASSERT_EQ(completions_->Take(wc, 8), 2);
  EXPECT_TRUE(completions_->HasInput());
  ASSERT_EQ(completions_->Take(wc + 2, 6), 1);
  EXPECT_EQ(wc[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(wc[1].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(wc[2].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_FALSE(completions_->HasInput());
}

TEST_F(CompletionsTest, NoMoreAreTakenThanAskedFor) {
  for (int i = 0; i < 4; ++i) Post();
  ibv_wc wc[4];
  EXPECT_EQ(completions_->Take(wc, 3), 3);
  EXPECT_TRUE(completions_->HasInput());
  EXPECT_EQ(completions_->Take(wc, 3), 1);
  EXPECT_EQ(completions_->Take(wc, 3), 0);
}

TEST_F(CompletionsTest, OnlyTheArmedAreWoken) {
  Post();
  EXPECT_FALSE(wakes());
  completions_->SetArmed(true);
  EXPECT_FALSE(wakes()) << "it was there before: whoever arms looks again";
  EXPECT_TRUE(completions_->HasInput());
  Post();
  EXPECT_TRUE(wakes());
}

TEST_F(CompletionsTest, ClearingArmsAgain) {
  completions_->SetArmed(true);
  for (int round = 0; round < 3; ++round) {
    Post();
    ASSERT_TRUE(wakes()) << round;
    completions_->ClearWakeup();
    ASSERT_FALSE(wakes()) << round;
  }
  completions_->SetArmed(false);
  // Expects one more report, because the device was armed once more.
  Post();
  completions_->ClearWakeup();
  ibv_wc wc[8];
  EXPECT_EQ(completions_->Take(wc, 8), 4);
  Post();
  EXPECT_FALSE(wakes());
}

// Tests two events at once, which an edge-triggered waiter sees as one.
TEST_F(CompletionsTest, ClearingTakesAllEvents) {
  for (int round = 0; round < 2; ++round) {
    completions_->SetArmed(true);
    Post();
    completions_->SetArmed(true);
    Post();
    ASSERT_TRUE(wakes());
    completions_->ClearWakeup();
    EXPECT_FALSE(wakes()) << round;
    ibv_wc wc[4];
    ASSERT_EQ(completions_->Take(wc, 4), 2);
  }
  Post();
  EXPECT_TRUE(wakes()) << "clearing armed again";
}

TEST_F(CompletionsTest, WakingNeedsNoDevice) {
  std::thread([this] { completions_->Wake(); }).join();
  EXPECT_TRUE(wakes());
  EXPECT_FALSE(completions_->HasInput());
  completions_->ClearWakeup();
  EXPECT_FALSE(wakes());
}

// Tests that events are acknowledged: TearDown() checks that the device found
// no misuse.
TEST_F(CompletionsTest, EventsAreAcknowledgedBeforeTheEnd) {
  completions_->SetArmed(true);
  ibv_wc wc[4];
  for (int i = 0; i < 70; ++i) {
    Post();
    completions_->ClearWakeup();
    ASSERT_EQ(completions_->Take(wc, 4), 1);
  }
  Post();
  ASSERT_TRUE(wakes()) << "and one that nobody has looked at";
  End();
}

TEST_F(CompletionsTest, DeadDeviceIsInputAndANegativeCount) {
  pair_.verbs.FailNext(Call::kPollCq, EIO);
  EXPECT_TRUE(completions_->HasInput());
  ibv_wc wc;
  EXPECT_LT(completions_->Take(&wc, 1), 0);
  EXPECT_LT(completions_->Take(&wc, 1), 0) << "for good";
  EXPECT_TRUE(completions_->HasInput());
}

TEST_F(CompletionsTest, WhatCameBeforeTheDeathIsTakenFirst) {
  Post();
  ASSERT_TRUE(completions_->HasInput());
  pair_.verbs.FailNext(Call::kPollCq, EIO);
  ibv_wc wc[4];
  EXPECT_EQ(completions_->Take(wc, 4), 1);
  EXPECT_LT(completions_->Take(wc, 4), 0);
}

TEST_F(CompletionsTest, EveryFailureInTheMakingIsGivenBack) {
  const int before = pair_.verbs.counts().objects();
  for (const Call call : {Call::kCreateCompChannel, Call::kCreateCq}) {
    pair_.verbs.FailNext(call, ENOMEM);
    EXPECT_EQ(Completions::Create(&pair_.verbs, pair_.client.device, 4)
                  .status()
                  .code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(pair_.verbs.counts().objects(), before);
  }
}

TEST_F(CompletionsTest, OthersMayLookAndArmWhileTheOwnerTakes) {
  std::atomic<bool> over{false};
  std::vector<std::thread> lookers;
  for (int i = 0; i < 2; ++i) {
    lookers.emplace_back([&, i] {
      while (!over) {
        (void)completions_->HasInput();
        completions_->SetArmed(i == 0);
        completions_->Wake();
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const bool reads = i % 2 == 1;
    Post(reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
    ibv_wc wc[2];
    ASSERT_EQ(completions_->Take(wc, 2), 1) << "lost or doubled";
    ASSERT_EQ(wc[0].opcode, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
    completions_->ClearWakeup();
  }
  over = true;
  for (std::thread& looker : lookers) looker.join();
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
