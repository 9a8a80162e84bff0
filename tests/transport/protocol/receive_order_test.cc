#include "transport/protocol/receive_order.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {
namespace {

using Verdict = ReceiveOrder::Verdict;

class ReceiveOrderTest : public ::testing::Test {
 protected:
  absl::Status Accept(uint64_t sequence, const std::string& payload,
                      Verdict* verdict) {
    wire::Frame frame;
    frame.header.type = wire::FrameType::kMessage;
    frame.header.sequence = sequence;
    frame.header.length = static_cast<uint32_t>(payload.size());
    frame.payload = absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
    return order_.Accept(frame, verdict);
  }
  Verdict Accept(uint64_t sequence) {
    Verdict verdict;
    const absl::Status status =
        Accept(sequence, "payload " + std::to_string(sequence), &verdict);
    EXPECT_TRUE(status.ok()) << status;
    return verdict;
  }
  // Returns the sequence number of the next held frame, or 0.
  uint64_t Next() {
    ReceiveOrder::HeldFrame held;
    if (!order_.TakeNext(&held)) return 0;
    EXPECT_EQ(held.payload, "payload " + std::to_string(held.header.sequence));
    EXPECT_EQ(order_.delivered(), held.header.sequence);
    return held.header.sequence;
  }

  ReceiveOrder order_;
};

TEST_F(ReceiveOrderTest, FramesInOrderPassThrough) {
  EXPECT_EQ(order_.delivered(), 0u);
  for (uint64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(Accept(i), Verdict::kDeliver);
    EXPECT_EQ(order_.delivered(), i);
    EXPECT_EQ(Next(), 0u);
  }
}

TEST_F(ReceiveOrderTest, EarlyFramesWaitForTheMissingOne) {
  EXPECT_EQ(Accept(3), Verdict::kHeld);
  EXPECT_EQ(Accept(2), Verdict::kHeld);
  EXPECT_EQ(Accept(5), Verdict::kHeld);
  EXPECT_EQ(order_.delivered(), 0u);
  EXPECT_EQ(Next(), 0u);
  EXPECT_EQ(Accept(1), Verdict::kDeliver);
  EXPECT_EQ(Next(), 2u);
  EXPECT_EQ(Next(), 3u);
  EXPECT_EQ(Next(), 0u);
  EXPECT_EQ(Accept(4), Verdict::kDeliver);
  EXPECT_EQ(Next(), 5u);
  EXPECT_EQ(Next(), 0u);
}

TEST_F(ReceiveOrderTest, DuplicatesAreKnownDeliveredOrHeld) {
  EXPECT_EQ(Accept(1), Verdict::kDeliver);
  EXPECT_EQ(Accept(1), Verdict::kDuplicate);
  EXPECT_EQ(Accept(3), Verdict::kHeld);
  EXPECT_EQ(Accept(3), Verdict::kDuplicate);
  EXPECT_EQ(Accept(2), Verdict::kDeliver);
  EXPECT_EQ(Next(), 3u);
  EXPECT_EQ(Accept(3), Verdict::kDuplicate);
  EXPECT_EQ(Next(), 0u);
}

TEST_F(ReceiveOrderTest, AnyOrderGivesTheSameOrder) {
  // Delivers the frames 1..64, each twice, in steps that reach each of them.
  for (uint64_t step : {1, 5, 7, 13, 63}) {
    order_ = ReceiveOrder();
    uint64_t delivered = 0;
    for (uint64_t i = 0; i < 128; ++i) {
      const uint64_t sequence = 1 + i * step % 64;
      if (Accept(sequence) != Verdict::kDeliver) continue;
      EXPECT_EQ(sequence, ++delivered);
      while (Next() != 0) ++delivered;
    }
    EXPECT_EQ(delivered, 64u);
    EXPECT_EQ(order_.delivered(), 64u);
  }
}

TEST_F(ReceiveOrderTest, WhatIsHeldIsBounded) {
  const std::string payload(wire::kMaxFramePayload, 'x');
  Verdict verdict;
  uint64_t sequence = 2;
  absl::Status status;
  while ((status = Accept(sequence, payload, &verdict)).ok()) {
    ASSERT_EQ(verdict, Verdict::kHeld);
    ASSERT_LE((++sequence - 2) * payload.size(), ReceiveOrder::kMaxHeldBytes);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(sequence, 200u);
  // Accepts frames that are delivered immediately. The limit applies only to
  // held frames.
  EXPECT_TRUE(Accept(1, payload, &verdict).ok());
  EXPECT_EQ(verdict, Verdict::kDeliver);
  ReceiveOrder::HeldFrame held;
  while (order_.TakeNext(&held)) {
  }
  EXPECT_EQ(order_.delivered(), sequence - 1);
  EXPECT_TRUE(Accept(sequence + 1, payload, &verdict).ok());
}

TEST_F(ReceiveOrderTest, EmptyFramesAreBoundedToo) {
  Verdict verdict;
  uint64_t sequence = 2;
  while (Accept(sequence, "", &verdict).ok()) {
    ASSERT_LT(++sequence, ReceiveOrder::kMaxHeldBytes / 32);
  }
}

TEST_F(ReceiveOrderTest, FarAheadIsHeldAndLastNumberHasNoSuccessor) {
  EXPECT_EQ(Accept(~uint64_t{0}), Verdict::kHeld);
  EXPECT_EQ(Next(), 0u);
  EXPECT_EQ(Accept(1), Verdict::kDeliver);
  EXPECT_EQ(Next(), 0u);
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
