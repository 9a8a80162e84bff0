#include "tensor_service/rendezvous.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::tensor {
namespace {

using Received = Rendezvous::Received;

constexpr size_t kKiB = 1024;

RendezvousKey Key(uint64_t step, const std::string& name) {
  return {step, name, "a", "b"};
}

Tensor Bytes(size_t size, uint8_t value = 7) {
  return *Tensor::Of<uint8_t>({static_cast<int64_t>(size)},
                              std::vector<uint8_t>(size, value));
}

// The result of a wait, if any.
struct Outcome {
  int calls = 0;
  absl::StatusOr<Received> received = absl::UnknownError("it still waits");
};

class RendezvousTest : public testing::Test {
 protected:
  std::shared_ptr<Outcome> Receive(const RendezvousKey& key) {
    auto outcome = std::make_shared<Outcome>();
    last_wait_ = table_->Receive(key, [to = outcome](auto received) {
      ++to->calls;
      to->received = std::move(received);
    });
    return outcome;
  }

  void Make(Rendezvous::Options options) {
    options.clock = [this] { return now_; };
    table_ = std::make_unique<Rendezvous>(options);
  }

  void SetUp() override { Make({}); }

  void ExpectEmpty() const {
    const Rendezvous::Usage usage = table_->usage();
    EXPECT_EQ(usage.bytes, 0u);
    EXPECT_EQ(usage.tensors, 0u);
    EXPECT_EQ(usage.waiters, 0u);
  }

  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<Rendezvous> table_;
  uint64_t last_wait_ = 0;
};

absl::StatusCode CodeOf(const Outcome& outcome) {
  return outcome.received.status().code();
}

TEST_F(RendezvousTest, SendBeforeReceiveSharesTheMemory) {
  const Tensor sent = Bytes(10);
  ASSERT_TRUE(table_->Send(Key(1, "x"), sent).ok());
  EXPECT_EQ(table_->usage().bytes, Rendezvous::kEntryBytes + 3 + 10);
  const auto got = Receive(Key(1, "x"));
  ASSERT_TRUE(got->received.ok()) << got->received.status();
  EXPECT_EQ(got->received->tensor.bytes().data(), sent.bytes().data());
  EXPECT_FALSE(got->received->is_dead);
  ExpectEmpty();
}

TEST_F(RendezvousTest, ReceiveBeforeSendSharesTheMemory) {
  const auto got = Receive(Key(1, "x"));
  EXPECT_EQ(got->calls, 0);
  EXPECT_EQ(table_->usage().waiters, 1u);
  const Tensor sent = Bytes(10);
  ASSERT_TRUE(table_->Send(Key(1, "x"), sent).ok());
  EXPECT_EQ(got->calls, 1);
  EXPECT_EQ(got->received->tensor.bytes().data(), sent.bytes().data());
  ExpectEmpty();
}

TEST_F(RendezvousTest, EveryPartOfTheKeyCounts) {
  const auto got = Receive({1, "x", "a", "b"});
  for (const RendezvousKey& other :
       {RendezvousKey{2, "x", "a", "b"}, RendezvousKey{1, "y", "a", "b"},
        RendezvousKey{1, "x", "c", "b"}, RendezvousKey{1, "x", "a", "c"},
        RendezvousKey{1, "x", "ab", ""}, RendezvousKey{1, "xa", "", "b"}}) {
    ASSERT_TRUE(table_->Send(other, Bytes(1)).ok()) << other.ToString();
  }
  EXPECT_EQ(got->calls, 0);
  ASSERT_TRUE(table_->Send({1, "x", "a", "b"}, Bytes(1)).ok());
  EXPECT_EQ(got->calls, 1);
}

TEST_F(RendezvousTest, DeadTensorComesWithItsMark) {
  Rendezvous::SendOptions dead;
  dead.is_dead = true;
  ASSERT_TRUE(table_->Send(Key(1, "x"), Tensor(), dead).ok());
  const auto got = Receive(Key(1, "x"));
  ASSERT_TRUE(got->received.ok());
  EXPECT_TRUE(got->received->is_dead);
}

TEST_F(RendezvousTest, BroadcastGivesAllReceiversTheSameMemory) {
  const Tensor sent = Bytes(10);
  std::vector<std::shared_ptr<Outcome>> all;
  all.push_back(Receive(Key(1, "x")));
  Rendezvous::SendOptions three;
  three.receivers = 3;
  ASSERT_TRUE(table_->Send(Key(1, "x"), sent, three).ok());
  EXPECT_EQ(table_->usage().tensors, 1u);
  all.push_back(Receive(Key(1, "x")));
  EXPECT_EQ(table_->usage().tensors, 1u);
  all.push_back(Receive(Key(1, "x")));
  ExpectEmpty();
  for (const auto& got : all) {
    ASSERT_TRUE(got->received.ok());
    EXPECT_EQ(got->received->tensor.bytes().data(), sent.bytes().data());
  }
  EXPECT_EQ(Receive(Key(1, "x"))->calls, 0);
}

TEST_F(RendezvousTest, ReceiversAreServedInTheirOrder) {
  const auto first = Receive(Key(1, "x"));
  const auto second = Receive(Key(1, "x"));
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1, 1)).ok());
  EXPECT_EQ(first->calls, 1);
  EXPECT_EQ(second->calls, 0);
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1, 2)).ok());
  EXPECT_EQ(second->received->tensor.bytes()[0], 2);
}

TEST_F(RendezvousTest, SecondSendIsRefusedUntilTheFirstIsFetched) {
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1, 1)).ok());
  EXPECT_EQ(table_->Send(Key(1, "x"), Bytes(1, 2)).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Receive(Key(1, "x"))->received->tensor.bytes()[0], 1);
  EXPECT_TRUE(table_->Send(Key(1, "x"), Bytes(1, 3)).ok());
}

TEST_F(RendezvousTest, BadKeysAreRefusedOnBothSides) {
  const std::string at_bound(RendezvousKey::kMaxNameBytes - 2, 'n');
  for (const RendezvousKey& bad :
       {RendezvousKey{1, "", "a", "b"}, RendezvousKey{1, "\xff", "a", "b"},
        RendezvousKey{1, "x", "\xc0\x80", "b"},
        RendezvousKey{1, "x", "", "\x80"}, Key(1, at_bound + "n"),
        Key(1, std::string(1 << 20, 'n'))}) {
    const absl::Status sent = table_->Send(bad, Bytes(1));
    EXPECT_EQ(sent.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(sent.message().size(), 200u) << "the message quotes the key";
    const auto got = Receive(bad);
    EXPECT_EQ(got->calls, 1);
    EXPECT_EQ(CodeOf(*got), absl::StatusCode::kInvalidArgument);
  }
  ExpectEmpty();
  EXPECT_TRUE(table_->Send(Key(1, at_bound), Bytes(1)).ok());
}

TEST_F(RendezvousTest, NoAndTooManyReceiversAreRefused) {
  for (const uint32_t receivers :
       {0u, Rendezvous::kMaxReceivers + 1, 0xffffffffu}) {
    Rendezvous::SendOptions options;
    options.receivers = receivers;
    EXPECT_EQ(table_->Send(Key(1, "x"), Bytes(1), options).code(),
              absl::StatusCode::kInvalidArgument);
  }
  ExpectEmpty();
}

TEST_F(RendezvousTest, ReceiverThatGivesUpLeavesTheTensorForTheNext) {
  const auto dead = Receive(Key(1, "x"));
  EXPECT_TRUE(table_->Cancel(last_wait_, absl::CancelledError("it died")));
  EXPECT_EQ(CodeOf(*dead), absl::StatusCode::kCancelled);
  EXPECT_TRUE(absl::StrContains(dead->received.status().message(), "it died"));
  EXPECT_FALSE(table_->Cancel(last_wait_, absl::CancelledError("again")));
  EXPECT_EQ(dead->calls, 1);
  ExpectEmpty();
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1)).ok());
  EXPECT_EQ(table_->usage().tensors, 1u);
  EXPECT_TRUE(Receive(Key(1, "x"))->received.ok());
}

TEST_F(RendezvousTest, CancelOfAStepEndsAllOfItWithItsReason) {
  const auto mine = Receive(Key(1, "x"));
  const auto mine_too = Receive(Key(1, "y"));
  const auto other = Receive(Key(2, "x"));
  ASSERT_TRUE(table_->Send(Key(1, "z"), Bytes(kKiB)).ok());
  ASSERT_TRUE(table_->CancelStep(1, absl::AbortedError("disk full")).ok());
  for (const Outcome* got : {mine.get(), mine_too.get()}) {
    EXPECT_EQ(got->calls, 1);
    EXPECT_EQ(CodeOf(*got), absl::StatusCode::kAborted);
    EXPECT_TRUE(
        absl::StrContains(got->received.status().message(), "disk full"));
  }
  EXPECT_EQ(other->calls, 0);
  EXPECT_EQ(table_->usage().tensors, 0u);
  EXPECT_EQ(table_->usage().bytes, 0u);
  // Expects that later calls fail, too.
  EXPECT_EQ(table_->Send(Key(1, "x"), Bytes(1)).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(CodeOf(*Receive(Key(1, "z"))), absl::StatusCode::kAborted);
  // Expects that the first reason stays.
  ASSERT_TRUE(table_->CancelStep(1, absl::InternalError("late")).ok());
  EXPECT_EQ(CodeOf(*Receive(Key(1, "z"))), absl::StatusCode::kAborted);
}

TEST_F(RendezvousTest, CancelNeedsAnError) {
  const auto got = Receive(Key(1, "x"));
  EXPECT_EQ(table_->CancelStep(1, absl::OkStatus()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table_->CancelAll(absl::OkStatus()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(got->calls, 0);
}

TEST_F(RendezvousTest, FinishedStepRefusesLateComers) {
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1)).ok());
  table_->FinishStep(1);
  ExpectEmpty();
  EXPECT_EQ(table_->Send(Key(1, "x"), Bytes(1)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RendezvousTest, OnlyTheLastEndedStepsAreRemembered) {
  Rendezvous::Options options;
  options.max_ended_steps = 2;
  Make(options);
  // Expects that ending the highest step ends no other step.
  for (const uint64_t step : {uint64_t{5}, ~uint64_t{0}, uint64_t{3}}) {
    table_->FinishStep(step);
  }
  EXPECT_FALSE(table_->Send(Key(3, "x"), Bytes(1)).ok());
  EXPECT_FALSE(table_->Send(Key(~uint64_t{0}, "x"), Bytes(1)).ok());
  EXPECT_TRUE(table_->Send(Key(5, "x"), Bytes(1)).ok());
  EXPECT_TRUE(table_->Send(Key(4, "x"), Bytes(1)).ok());
}

TEST_F(RendezvousTest, StepCanBeCancelledWhereNoneIsRemembered) {
  Rendezvous::Options options;
  options.max_ended_steps = 0;
  Make(options);
  const auto got = Receive(Key(1, "x"));
  ASSERT_TRUE(table_->CancelStep(1, absl::AbortedError("r")).ok());
  EXPECT_EQ(CodeOf(*got), absl::StatusCode::kAborted);
}

TEST_F(RendezvousTest, LongReasonIsCutBetweenCharacters) {
  std::string reason(EndedSteps::kMaxReasonBytes - 1, 'r');
  ASSERT_TRUE(
      table_->CancelStep(1, absl::AbortedError(reason + "\u00e9")).ok());
  const absl::Status status = table_->Send(Key(1, "x"), Bytes(1));
  EXPECT_TRUE(absl::EndsWith(status.message(), reason));
}

TEST_F(RendezvousTest, CancelOfAllEndsEverythingForGood) {
  const auto got = Receive(Key(1, "x"));
  ASSERT_TRUE(table_->Send(Key(2, "x"), Bytes(1)).ok());
  ASSERT_TRUE(table_->CancelAll(absl::UnavailableError("shutting down")).ok());
  EXPECT_EQ(CodeOf(*got), absl::StatusCode::kUnavailable);
  ExpectEmpty();
  EXPECT_EQ(CodeOf(*Receive(Key(9, "x"))), absl::StatusCode::kUnavailable);
}

TEST_F(RendezvousTest, WaitsEndWithTheTable) {
  const auto got = Receive(Key(1, "x"));
  table_.reset();
  EXPECT_EQ(CodeOf(*got), absl::StatusCode::kCancelled);
}

TEST_F(RendezvousTest, UnfetchedTensorsFillTheBudgetUntilTheyAreFetched) {
  Rendezvous::Options options;
  options.budget_bytes = 3 * (Rendezvous::kEntryBytes + 3 + kKiB);
  Make(options);
  for (const char* name : {"x", "y", "z"}) {
    ASSERT_TRUE(table_->Send(Key(1, name), Bytes(kKiB)).ok());
  }
  const absl::Status full = table_->Send(Key(1, "w"), Bytes(0));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(
      absl::StrContains(full.message(), absl::StrCat(options.budget_bytes)));
  // Expects that a tensor for a waiting receiver needs no room.
  const auto got = Receive(Key(1, "v"));
  EXPECT_TRUE(table_->Send(Key(1, "v"), Bytes(100 * kKiB)).ok());
  EXPECT_TRUE(got->received.ok());
  EXPECT_TRUE(Receive(Key(1, "y"))->received.ok());
  EXPECT_TRUE(table_->Send(Key(1, "w"), Bytes(kKiB)).ok());
}

TEST_F(RendezvousTest, BroadcastAboveTheBudgetServesNobody) {
  Rendezvous::Options options;
  options.budget_bytes = kKiB;
  Make(options);
  const auto got = Receive(Key(1, "x"));
  Rendezvous::SendOptions two;
  two.receivers = 2;
  EXPECT_EQ(table_->Send(Key(1, "x"), Bytes(kKiB), two).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(got->calls, 0);
  EXPECT_EQ(table_->usage().waiters, 1u);
}

TEST_F(RendezvousTest, WaitsAreBounded) {
  Rendezvous::Options options;
  options.max_waiters = 2;
  Make(options);
  const auto first = Receive(Key(1, "x"));
  const auto second = Receive(Key(1, "x"));
  const auto third = Receive(Key(2, "x"));
  EXPECT_EQ(CodeOf(*third), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1)).ok());
  EXPECT_EQ(Receive(Key(2, "x"))->calls, 0);
}

TEST_F(RendezvousTest, WhatNobodyFetchesExpires) {
  Rendezvous::Options options;
  options.unfetched_limit = absl::Seconds(10);
  Make(options);
  ASSERT_TRUE(table_->Send(Key(1, "old"), Bytes(1)).ok());
  now_ += absl::Seconds(6);
  ASSERT_TRUE(table_->Send(Key(1, "new"), Bytes(1)).ok());
  now_ += absl::Seconds(4);
  EXPECT_EQ(Receive(Key(1, "old"))->calls, 0);
  EXPECT_EQ(table_->usage().tensors, 1u);
  now_ += absl::Seconds(6);
  table_->Sweep();
  EXPECT_EQ(table_->usage().tensors, 0u);
  EXPECT_EQ(table_->usage().bytes, 0u);
}

TEST_F(RendezvousTest, NothingExpiresWithoutALimit) {
  Rendezvous::Options options;
  options.unfetched_limit = absl::ZeroDuration();
  Make(options);
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1)).ok());
  now_ += absl::Hours(24 * 365 * 100);
  EXPECT_TRUE(Receive(Key(1, "x"))->received.ok());
}

TEST_F(RendezvousTest, PartOfALargeMessageIsCopiedOnlyIfKept) {
  const auto part = [] {
    static const std::string message(64 * kKiB, 'm');
    return *Tensor::FromBuffer(
        DType::kUint8, {kKiB},
        Buffer::FromSlice(
            grpc::Slice(message.data(), kKiB, grpc::Slice::STATIC_SLICE),
            message.size()));
  };
  const auto waits = Receive(Key(1, "x"));
  const Tensor handed = part();
  ASSERT_TRUE(table_->Send(Key(1, "x"), handed).ok());
  EXPECT_EQ(waits->received->tensor.bytes().data(), handed.bytes().data());
  ASSERT_TRUE(table_->Send(Key(1, "x"), part()).ok());
  EXPECT_EQ(table_->usage().bytes, Rendezvous::kEntryBytes + 3 + kKiB);
  EXPECT_EQ(Receive(Key(1, "x"))->received->tensor.held_bytes(), kKiB);
}

TEST_F(RendezvousTest, CallbacksMayCallAgain) {
  std::vector<int> got;
  std::function<void(absl::StatusOr<Received>)> again = [&](auto received) {
    if (!received.ok()) return;
    got.push_back(received->tensor.bytes()[0]);
    last_wait_ = table_->Receive(Key(1, "x"), again);
  };
  last_wait_ = table_->Receive(Key(1, "x"), again);
  for (uint8_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1, i)).ok());
  }
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(table_->Cancel(last_wait_, absl::CancelledError("end")));
}

TEST_F(RendezvousTest, BlockingReceiveGetsWhatAnotherThreadSends) {
  std::thread sender(
      [this] { EXPECT_TRUE(table_->Send(Key(1, "x"), Bytes(1, 9)).ok()); });
  const auto got = table_->Receive(Key(1, "x"), absl::InfiniteDuration());
  sender.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.bytes()[0], 9);
}

TEST_F(RendezvousTest, BlockingReceiveEndsByItsTimeAndLosesNothing) {
  const auto got = table_->Receive(Key(1, "x"), absl::ZeroDuration());
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(got.status().message(), "tensor x from a to b"))
      << got.status();
  ExpectEmpty();
  ASSERT_TRUE(table_->Send(Key(1, "x"), Bytes(1)).ok());
  EXPECT_TRUE(table_->Receive(Key(1, "x"), absl::ZeroDuration()).ok());
}

}  // namespace
}  // namespace penstock::tensor
