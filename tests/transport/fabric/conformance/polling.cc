// Input, and who is to be rung for it.

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

class ConformancePolling : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    // How an end begins is the fabric's own matter.
    for (Side side : kSides) end(side)->SetArmed(false);
  }
};

class ConformancePushing : public Conformance {};

TEST_P(ConformancePushing, InputNeedsNoPollAndNoDoorbell) {
  b()->SetArmed(true);
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
  Pump();
  EXPECT_EQ(at_b().messages.size(), 1u);
}

TEST_P(ConformancePolling, InputIsThereUntilItIsPolled) {
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->HasInput());
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(at_b().IsSilent());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_b().messages.size(), 1u);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
}

TEST_P(ConformancePolling, EndOfThePeerIsInput) {
  Kill(Side::kA);
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_b().broken.size(), 1u);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
}

TEST_P(ConformancePolling, RoomForABlockedSenderIsInput) {
  SendUntilRefused(Side::kA);
  EXPECT_FALSE(a()->HasInput());
  while (b()->Poll()) {
  }
  EXPECT_TRUE(a()->HasInput());
  EXPECT_TRUE(a()->Poll());
  EXPECT_GT(at_a().writable, 0);
  EXPECT_FALSE(a()->HasInput());
}

// Others wait for the same thread.
TEST_P(ConformancePolling, OnePollEndsThoughThePeerKeepsSending) {
  int left = 100 * 1000;
  at_b().on_message = [&](absl::Span<const uint8_t>) {
    if (--left > 0) Send(Side::kA, "more");
  };
  ASSERT_TRUE(Send(Side::kA, "first"));
  EXPECT_TRUE(b()->Poll());
  EXPECT_GT(left, 0) << "Poll() went on as long as there was anything";
  EXPECT_TRUE(b()->HasInput());
}

TEST_P(ConformancePolling, ArmedReceiverIsToBeRungOnce) {
  b()->SetArmed(true);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(a()->TakeDoorbellRequest()) << "for nothing";
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_TRUE(a()->TakeDoorbellRequest());
  EXPECT_FALSE(a()->TakeDoorbellRequest()) << "twice for one message";
  // It asks for its own sake only.
  EXPECT_FALSE(b()->TakeDoorbellRequest());
}

TEST_P(ConformancePolling, ReceiverThatPollsIsNotToBeRung) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
  Pump();
  b()->SetArmed(true);
  b()->SetArmed(false);
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "y"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
  // Its own arming says nothing about the peer.
  Pump();
  a()->SetArmed(true);
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "z"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
}

// Between the receiver's last poll and its arming nobody rings: it looks.
TEST_P(ConformancePolling, InputFromBeforeArmingIsSeenAfterIt) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
  b()->SetArmed(true);
  EXPECT_TRUE(b()->HasInput());
}

TEST_P(ConformancePolling, EachMessageToAnArmedReceiverIsARequest) {
  b()->SetArmed(true);
  for (int i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "x"));
    EXPECT_TRUE(a()->TakeDoorbellRequest()) << i;
    Pump();
    (void)a()->TakeDoorbellRequest();
  }
}

// It sleeps, though it has something to send.
TEST_P(ConformancePolling, BlockedSenderIsToBeRungWhenThereIsRoom) {
  SendUntilRefused(Side::kA);
  a()->SetArmed(true);
  EXPECT_FALSE(a()->HasInput());
  EXPECT_FALSE(b()->TakeDoorbellRequest());
  EXPECT_TRUE(b()->Poll());
  EXPECT_TRUE(b()->TakeDoorbellRequest());
  EXPECT_TRUE(a()->HasInput());
}

// As a poller does before it sleeps, without the owner's lock.
TEST_P(ConformancePolling, AnyThreadMayLookForInputAndArm) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (bool armed = false; !done; armed = !armed) {
      b()->SetArmed(armed);
      (void)b()->HasInput();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    SendSurely(Side::kA, "x");
    (void)a()->TakeDoorbellRequest();
    if (i % 3 == 0) b()->Poll();
  }
  Pump();
  done = true;
  other.join();
  EXPECT_EQ(at_b().messages.size(), 2000u);
}

TEST_P(Conformance, DoorbellReachesThePeerOfALifelineOnly) {
  const bool rings = capabilities().is_lifeline;
  for (int round = 0; round < 3; ++round) {
    at_b().doorbells = 0;
    for (int i = 0; i < 4; ++i) a()->RingDoorbell();
    Pump();
    EXPECT_GE(at_b().doorbells, rings ? 1 : 0);
    EXPECT_LE(at_b().doorbells, rings ? 4 : 0);
  }
  EXPECT_TRUE(at_a().IsSilent());
}

// A fabric is one or the other.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformancePolling);
INSTANTIATE_TEST_SUITE_P(
    Fabric, ConformancePolling,
    ::testing::ValuesIn(FabricsWhere(&FabricCase::is_polled)), NameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformancePushing);
INSTANTIATE_TEST_SUITE_P(Fabric, ConformancePushing,
                         ::testing::ValuesIn(FabricsWhere(
                             [](const FabricCase& f) { return !f.is_polled; })),
                         NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
