// Tests how an end learns of input, and when its peer must ring a doorbell.

#include <poll.h>
#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

class ConformancePolling : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    // Disarms both ends, because an end may be armed initially.
    for (Side side : kSides) end(side)->SetArmed(false);
  }
};

// A fixture for both ways in which an end rings its peer: a descriptor of the
// peer, if there is one, or the lifeline.
class ConformanceDoorbell : public ConformancePolling {
 protected:
  void SetUp() override {
    ConformancePolling::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    for (Side side : kSides) {
      base::UniqueFd& epoll = epolls_[static_cast<int>(side)];
      epoll.Reset(epoll_create1(EPOLL_CLOEXEC));
      for (int fd : end(side)->wakeup_fds()) {
        epoll_event event = {};
        event.events = EPOLLIN | EPOLLET;
        ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event), 0);
      }
      (void)TakeEvent(side);  // a descriptor may be readable initially
    }
  }
  // Returns true if the end of `side` has rung its peer since the last call, or
  // if the lifeline must ring the peer.
  bool Rings(Side side) {
    const bool is_asked = end(side)->TakeDoorbellRequest();
    return TakeEvent(Other(side)) || is_asked;
  }

 private:
  bool TakeEvent(Side side) {
    epoll_event event;
    return epoll_wait(epolls_[static_cast<int>(side)].get(), &event, 1, 0) == 1;
  }

  base::UniqueFd epolls_[2];
};
class ConformanceDescriptor : public ConformancePolling {
 protected:
  // Returns true if the owner of `end` would have been woken by now.
  static bool IsAwake(Endpoint* end) {
    for (int fd : end->wakeup_fds()) {
      pollfd descriptor = {fd, POLLIN, 0};
      if (poll(&descriptor, 1, 0) == 1) return true;
    }
    return false;
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
  EXPECT_EQ(at_b().packets.size(), 1u);
}

TEST_P(ConformancePolling, InputIsThereUntilItIsPolled) {
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
  ASSERT_TRUE(Send(Side::kA, "x"));
  harness_->Settle();
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(at_b().IsSilent());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_b().packets.size(), 1u);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
}

TEST_P(ConformancePolling, EndOfThePeerIsInput) {
  Kill(Side::kA);
  harness_->Settle();
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_b().broken.size(), 1u);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
}

TEST_P(ConformanceDoorbell, RoomForABlockedSenderIsInput) {
  SendUntilRefused(Side::kA);
  EXPECT_FALSE(a()->HasInput());
  while (b()->Poll()) {
  }
  EXPECT_TRUE(a()->HasInput());
  EXPECT_TRUE(a()->Poll());
  EXPECT_GT(at_a().writable, 0);
  EXPECT_FALSE(a()->HasInput());
}

// Tests that a single Poll() is bounded, so that the thread can serve other
// connections.
TEST_P(ConformancePolling, OnePollEndsThoughThePeerKeepsSending) {
  int left = 100 * 1000;
  at_b().on_packet = [&](absl::Span<const uint8_t>) {
    if (--left > 0) Send(Side::kA, "more");
  };
  ASSERT_TRUE(Send(Side::kA, "first"));
  harness_->Settle();
  EXPECT_TRUE(b()->Poll());
  EXPECT_GT(left, 0) << "Poll() went on as long as there was anything";
  harness_->Settle();
  EXPECT_TRUE(b()->HasInput());
}

TEST_P(ConformanceDoorbell, ArmedReceiverIsToBeRungOnce) {
  b()->SetArmed(true);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(Rings(Side::kA)) << "for nothing";
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_TRUE(Rings(Side::kA));
  EXPECT_FALSE(Rings(Side::kA)) << "twice for one packet";
  // Expects that side B, which has sent nothing, does not ring its peer.
  EXPECT_FALSE(Rings(Side::kB));
}

TEST_P(ConformanceDoorbell, ReceiverThatPollsIsNotToBeRung) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(Rings(Side::kA));
  Pump();
  b()->SetArmed(true);
  b()->SetArmed(false);
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "y"));
  EXPECT_FALSE(Rings(Side::kA));
  // Arms side A, which does not affect side B.
  Pump();
  a()->SetArmed(true);
  ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "z"));
  EXPECT_FALSE(Rings(Side::kA));
}

// Tests input that comes between the receiver's last poll and its arming.
// Nobody rings for such input, so the receiver must look again.
TEST_P(ConformanceDoorbell, InputFromBeforeArmingIsSeenAfterIt) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(Rings(Side::kA));
  b()->SetArmed(true);
  EXPECT_TRUE(b()->HasInput());
}

TEST_P(ConformanceDoorbell, EachPacketToAnArmedReceiverIsARequest) {
  b()->SetArmed(true);
  for (int i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(SendSurely(Side::kA, "x"));
    EXPECT_TRUE(Rings(Side::kA)) << i;
    Pump();
    b()->ClearWakeup();  // like the owner
    (void)Rings(Side::kA);
  }
}

// Tests a sender that sleeps although it has packets to send. The receiver must
// ring the sender's doorbell when there is room.
TEST_P(ConformanceDoorbell, BlockedSenderIsToBeRungWhenThereIsRoom) {
  SendUntilRefused(Side::kA);
  a()->SetArmed(true);
  EXPECT_FALSE(a()->HasInput());
  EXPECT_FALSE(Rings(Side::kB));
  EXPECT_TRUE(b()->Poll());
  EXPECT_TRUE(Rings(Side::kB));
  EXPECT_TRUE(a()->HasInput());
}

TEST_P(ConformanceDoorbell, SenderHasNoInputOfItsOwnPacket) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->HasInput());
}

TEST_P(ConformanceDescriptor, ArmedEndIsWokenByInput) {
  for (int i = 0; i < 5; ++i) {
    b()->SetArmed(true);
    EXPECT_FALSE(b()->HasInput());
    EXPECT_FALSE(IsAwake(b())) << "for nothing, round " << i;
    ASSERT_TRUE(Send(Side::kA, "x"));
    harness_->Settle();
    EXPECT_TRUE(IsAwake(b()));
    b()->ClearWakeup();
    EXPECT_TRUE(b()->Poll());
    Pump();
    b()->ClearWakeup();
    EXPECT_FALSE(IsAwake(b()));
    EXPECT_EQ(at_b().packets.size(), static_cast<size_t>(i + 1));
  }
}

// Tests several wake-ups in a row. The end must stay armed without another
// SetArmed().
TEST_P(ConformanceDescriptor, StaysArmedAfterAWakeUp) {
  b()->SetArmed(true);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Send(Side::kA, "x"));
    harness_->Settle();
    EXPECT_TRUE(IsAwake(b())) << i;
    b()->ClearWakeup();
    while (b()->Poll()) {
    }
  }
}

TEST_P(ConformanceDescriptor, InputFromBeforeArmingIsSeenAfterIt) {
  ASSERT_TRUE(Send(Side::kA, "x"));
  harness_->Settle();
  b()->SetArmed(true);
  EXPECT_TRUE(b()->HasInput());
}

TEST_P(ConformanceDescriptor, SleeperIsWokenByTheEndOfThePeer) {
  b()->SetArmed(true);
  EXPECT_FALSE(b()->HasInput());
  Kill(Side::kA);
  harness_->Settle();
  EXPECT_TRUE(IsAwake(b()));
}

TEST_P(ConformanceDescriptor, BlockedSenderIsWokenWhenThereIsRoom) {
  SendUntilRefused(Side::kA);
  harness_->Settle();
  while (a()->Poll()) {
  }
  a()->SetArmed(true);
  ASSERT_EQ(at_a().writable, 0);
  while (b()->Poll()) harness_->Settle();
  EXPECT_TRUE(IsAwake(a()));
  a()->ClearWakeup();
  while (a()->Poll()) {
  }
  EXPECT_GT(at_a().writable, 0);
}

TEST_P(ConformanceDescriptor, NobodyIsToBeRung) {
  b()->SetArmed(true);
  ASSERT_TRUE(Send(Side::kA, "x"));
  EXPECT_FALSE(a()->TakeDoorbellRequest());
}

// Arms the end without its owner's lock, like a poller before it sleeps.
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
  EXPECT_EQ(at_b().packets.size(), 2000u);
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

std::vector<FabricCase> FabricsThat(Waking a, Waking b) {
  return FabricsWhere([a, b](const FabricCase& fabric) {
    return fabric.waking == a || fabric.waking == b;
  });
}

// Allows a suite without any fabric, because each fabric uses only one of the
// three ways to wake its owner.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformancePolling);
INSTANTIATE_TEST_SUITE_P(Fabric, ConformancePolling,
                         ::testing::ValuesIn(FabricsThat(Waking::kDoorbell,
                                                         Waking::kDescriptor)),
                         NameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceDoorbell);
INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceDoorbell,
                         ::testing::ValuesIn(FabricsThat(Waking::kDoorbell,
                                                         Waking::kDoorbell)),
                         NameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceDescriptor);
INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceDescriptor,
                         ::testing::ValuesIn(FabricsThat(Waking::kDescriptor,
                                                         Waking::kDescriptor)),
                         NameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformancePushing);
INSTANTIATE_TEST_SUITE_P(Fabric, ConformancePushing,
                         ::testing::ValuesIn(FabricsThat(Waking::kPushed,
                                                         Waking::kPushed)),
                         NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
