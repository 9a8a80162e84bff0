// Tests packets that the peer does not read.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

TEST_P(Conformance, SendWithoutCreditIsRefusedAndWritableFollows) {
  const size_t taken = SendUntilRefused(Side::kA);
  ASSERT_GT(taken, 0u);
  EXPECT_EQ(at_a().writable, 0);
  Pump();
  EXPECT_GT(at_a().writable, 0);
  // Expects that exactly the accepted packets arrive.
  EXPECT_EQ(at_b().packets.size(), taken);
  EXPECT_TRUE(Send(Side::kA, "goes again"));
  Pump();
  ASSERT_EQ(at_b().packets.size(), taken + 1);
  EXPECT_EQ(at_b().packets.back(), "goes again");
}

TEST_P(Conformance, WritableComesOnlyAfterARefusal) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(Send(Side::kA, "x"));
    Pump();
  }
  EXPECT_EQ(at_a().writable, 0);
  EXPECT_EQ(at_b().writable, 0);
}

// Tests that an event follows each time that credit was used up. Without the
// event, the session would wait forever with the frames that it has merged in
// the meantime.
TEST_P(Conformance, WritableFollowsEachTimeThatCreditRunsOut) {
  for (int round = 1; round <= 5; ++round) {
    SendUntilRefused(Side::kA);
    EXPECT_FALSE(Send(Side::kA, std::string(max_packet(), 'n')));
    const int before = at_a().writable;
    Pump();
    EXPECT_GT(at_a().writable, before) << "round " << round;
  }
}

// Sends smaller and smaller packets until none fits. The smallest packet may
// fit where the largest does not.
TEST_P(Conformance, WhatFitsAfterARefusalArrivesToo) {
  const size_t full = SendUntilRefused(Side::kA);
  size_t small = 0;
  while (small < 100 * 1000 && Send(Side::kA, "s")) ++small;
  EXPECT_FALSE(Send(Side::kA, std::string(max_packet(), 'l')));
  Pump();
  EXPECT_GT(at_a().writable, 0);
  EXPECT_EQ(at_b().packets.size(), full + small);
  EXPECT_TRUE(Send(Side::kA, std::string(max_packet(), 'l')));
}

TEST_P(Conformance, SendFromWithinWritableArrives) {
  constexpr uint32_t kPackets = 50;
  uint32_t next = 0;
  at_a().on_writable = [&] {
    while (next < kPackets && Send(Side::kA, RandomBytes(max_packet(), next)))
      ++next;
  };
  const size_t before = SendUntilRefused(Side::kA);
  Pump();
  EXPECT_EQ(next, kPackets);
  ASSERT_EQ(at_b().packets.size(), before + kPackets);
  for (uint32_t i = 0; i < kPackets; ++i) {
    EXPECT_TRUE(at_b().packets[before + i] == RandomBytes(max_packet(), i));
  }
}

// Tests two ends that are both out of credit. Neither end may wait for the
// other end to make room first.
TEST_P(Conformance, BothEndsWithoutCreditGetGoing) {
  const size_t from_a = SendUntilRefused(Side::kA);
  const size_t from_b = SendUntilRefused(Side::kB);
  Pump();
  EXPECT_EQ(at_b().packets.size(), from_a);
  EXPECT_EQ(at_a().packets.size(), from_b);
  EXPECT_GT(at_a().writable, 0);
  EXPECT_GT(at_b().writable, 0);
  ExpectAlive();
}

TEST_P(Conformance, NothingIsLostUnderBackPressure) {
  std::mt19937_64 random(7);
  std::vector<std::string> sent[2];
  for (int i = 0; i < 1000; ++i) {
    const Side from = random() % 2 == 0 ? Side::kA : Side::kB;
    const std::string text = RandomBytes(RandomSize(&random, max_packet()), i);
    ASSERT_NO_FATAL_FAILURE(SendSurely(from, text));
    sent[static_cast<int>(from)].push_back(text);
    if (random() % 8 == 0) harness_->Step();
  }
  Pump();
  EXPECT_TRUE(at_b().packets == sent[0]);
  EXPECT_TRUE(at_a().packets == sent[1]);
}

// Tests that a read does not wait for packets of the same end. A receiver frees
// the sender's memory by reading.
TEST_P(Conformance, ReadsNeedNoCredit) {
  const std::string bytes = RandomBytes(several_chunks(), 3);
  const Exposure exposure = Expose(Side::kB, PayloadOf(bytes));
  SendUntilRefused(Side::kA);
  const auto read = ReadWhole(Side::kA, exposure.region);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == bytes);
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
