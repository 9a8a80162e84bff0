// Tests packets, doorbells, and the end of a fake link.

#include "transport/fabric/fake/link.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/fake/fake_test_util.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace fake {
namespace {

TEST_F(FakeLinkTest, NothingMovesByItself) {
  ASSERT_TRUE(Send(a_.get(), "one"));
  ASSERT_TRUE(Send(a_.get(), "two"));
  EXPECT_EQ(at_b_.Take(), Lines{});
  EXPECT_EQ(link_.waiting(Side::kB), 2u);
  EXPECT_TRUE(b_->HasInput());
  EXPECT_FALSE(a_->HasInput());
  EXPECT_FALSE(a_->Poll());
  EXPECT_TRUE(link_.Step());
  EXPECT_EQ(at_b_.Take(), Lines{"packet one"});
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"packet two"});
  EXPECT_FALSE(b_->HasInput());
  EXPECT_FALSE(b_->Poll());
  EXPECT_FALSE(link_.Step());
  EXPECT_EQ(link_.counters(Side::kA).packets, 2u);
  EXPECT_EQ(link_.counters(Side::kA).packet_bytes, 6u);
  EXPECT_EQ(link_.counters(Side::kB).packets, 0u);
}

TEST_F(FakeLinkTest, StepsGoByAgeOrBySide) {
  Send(a_.get(), "1");
  Send(b_.get(), "2");
  Send(a_.get(), "3");
  EXPECT_TRUE(link_.Step(Side::kA));
  EXPECT_FALSE(link_.Step(Side::kA));
  EXPECT_EQ(at_a_.Take(), Lines{"packet 2"});
  EXPECT_EQ(link_.Deliver(1), 1);
  EXPECT_EQ(at_b_.Take(), Lines{"packet 1"});
  EXPECT_EQ(link_.StepAll(), 1);
  EXPECT_EQ(at_b_.Take(), Lines{"packet 3"});
}

class TimedLinkTest : public FakeLinkTest {
 protected:
  TimedLinkTest() : FakeLinkTest(Timed(&now_ns_)) {
    link_.SetSpeed(Side::kA, Speed{1000, 2});
    link_.SetSpeed(Side::kB, Speed{100, 1});
  }
  static LinkOptions Timed(const uint64_t* now_ns) {
    LinkOptions options;
    options.now_ns = [now_ns] { return *now_ns; };
    return options;
  }
  // Steps to the time of the next event, and returns that time. Expects that no
  // event is delivered before.
  uint64_t StepInTime() {
    EXPECT_GT(link_.NextDue(), now_ns_);
    now_ns_ = link_.NextDue() - 1;
    EXPECT_FALSE(link_.Step());
    EXPECT_FALSE(a_->Poll());
    EXPECT_FALSE(b_->Poll());
    ++now_ns_;
    EXPECT_TRUE(link_.Step());
    return now_ns_;
  }

  uint64_t now_ns_ = 0;
};

TEST_F(TimedLinkTest, PacketsShareALineAndNotTheOtherDirections) {
  Send(a_.get(), std::string(100, 'x'));
  Send(a_.get(), "later");
  Send(b_.get(), "back");
  EXPECT_EQ(StepInTime(), 104u);
  EXPECT_EQ(at_a_.Take(), Lines{"packet back"});
  EXPECT_EQ(StepInTime(), 1200u);
  EXPECT_EQ(StepInTime(), 1210u);
  EXPECT_EQ(at_b_.Take().back(), "packet later");
  EXPECT_EQ(link_.NextDue(), UINT64_MAX);
}

TEST_F(TimedLinkTest, ReadsAreAskedForAndAnswered) {
  const RemotePart part = PartOfLetters(200);
  std::string one(100, '.');
  std::string other(100, '.');
  Read(b_.get(), part, 0, &one, 1);
  Read(b_.get(), part, 100, &other, 2);
  EXPECT_EQ(StepInTime(), 100u + 1000 + 200);
  EXPECT_EQ(StepInTime(), 100u + 1000 + 400);
  EXPECT_EQ(at_b_.Take(), (Lines{"read 1 OK", "read 2 OK"}));
}

TEST_F(TimedLinkTest, ReadsOfADroppedLinkEndAtOnce) {
  const RemotePart part = PartOfLetters(200);
  std::string into(100, '.');
  Read(b_.get(), part, 0, &into, 1);
  link_.Drop();
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), (Lines{"read 1 failed", "broken"}));
}

TEST_F(FakeLinkTest, NothingIsDeliveredBeforeStart) {
  Link link;
  auto a = link.Take(Side::kA);
  auto b = link.Take(Side::kB);
  Send(a.get(), "early");
  EXPECT_FALSE(b->Poll());
  EXPECT_FALSE(link.Step());
  b->Start(&at_b_);
  EXPECT_TRUE(b->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"packet early"});
}

TEST_F(FakeLinkTest, OnePollIsBounded) {
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(Send(a_.get(), "x"));
  std::string into(1, '.');
  Read(b_.get(), RemotePart(), 0, &into, 1);
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take().size(), 64u);
  EXPECT_EQ(link_.waiting(Side::kB), 1u);
}

class FewCredits : public FakeLinkTest {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.credits = 2;
    options.max_packet_bytes = 8;
    return options;
  }
  FewCredits() : FakeLinkTest(Options()) {}
};

TEST_F(FewCredits, CreditComesBackWithDelivery) {
  EXPECT_TRUE(Send(a_.get(), "1"));
  EXPECT_TRUE(Send(a_.get(), "2"));
  EXPECT_FALSE(Send(a_.get(), "3"));
  EXPECT_FALSE(Send(a_.get(), "3"));
  EXPECT_TRUE(Send(b_.get(), "back"));
  EXPECT_TRUE(link_.Step(Side::kB));
  EXPECT_TRUE(a_->Poll());
  EXPECT_EQ(at_a_.Take(), (Lines{"packet back", "writable"}));
  EXPECT_TRUE(Send(a_.get(), "3"));
  EXPECT_FALSE(Send(a_.get(), "4"));
  EXPECT_EQ(link_.StepAll(), 3);
  EXPECT_EQ(at_a_.Take(), Lines{"writable"});
}

TEST_F(FewCredits, PacketAboveTheMaximumBreaksTheLink) {
  EXPECT_TRUE(Send(a_.get(), "12345678"));
  EXPECT_TRUE(Send(a_.get(), "123456789"));
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), Lines{"broken"});
}

TEST_F(FakeLinkTest, NthSendLosesItsPacketAndTheLink) {
  link_.FailNthSend(Side::kA, 2);
  EXPECT_TRUE(Send(a_.get(), "1"));
  link_.StepAll();
  EXPECT_TRUE(Send(a_.get(), "2"));
  EXPECT_TRUE(Send(a_.get(), "3"));
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), (Lines{"packet 1", "broken"}));
}

TEST_F(FakeLinkTest, DropEndsReadsThenBreaksOnce) {
  const RemotePart part = PartOfLetters(10);
  std::string into(3, '.');
  Read(b_.get(), part, 0, &into, 1);
  Send(a_.get(), "lost");
  Read(b_.get(), part, 0, &into, 2);
  link_.Drop();
  link_.Drop();
  Read(b_.get(), part, 0, &into, 3);  // the read ends immediately
  EXPECT_EQ(at_b_.Take(), Lines{"read 3 failed"});
  Send(b_.get(), "lost too");
  EXPECT_TRUE(a_->HasInput());
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(), (Lines{"read 1 failed", "read 2 failed", "broken"}));
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(into, "...");
  EXPECT_FALSE(a_->HasInput());
}

TEST_F(FakeLinkTest, DroppedSideAloneKnowsUntilItIsDestroyed) {
  const RemotePart part = PartOfLetters(10);
  Send(a_.get(), "before");
  link_.DropOneSide(Side::kA);
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), Lines{"packet before"});
  EXPECT_TRUE(Send(b_.get(), "into the void"));
  std::string into(3, '.');
  Read(b_.get(), part, 0, &into, 1);
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{});
  EXPECT_EQ(at_b_.Take(), Lines{"read 1 failed"});
  a_.reset();
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(), Lines{"broken"});
}

TEST_F(FakeLinkTest, DestroyedEndIsSeenAfterItsLastPackets) {
  const RemotePart part = PartOfLetters(10);
  std::string into(3, '.');
  Read(b_.get(), part, 0, &into, 1);
  Send(a_.get(), "last words");
  a_.reset();
  EXPECT_TRUE(b_->HasInput());
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(),
            (Lines{"read 1 failed", "packet last words", "broken"}));
  EXPECT_FALSE(b_->Poll());
  EXPECT_EQ(at_a_.Take(), Lines{});
}

TEST_F(FakeLinkTest, EventMayDestroyTheEndpoint) {
  Send(a_.get(), "1");
  Send(a_.get(), "2");
  at_b_.on_event = [this] { b_.reset(); };
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"packet 1"});
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
}

TEST_F(FakeLinkTest, ArmedPeerIsToBeRungOncePerBatch) {
  b_->SetArmed(true);
  EXPECT_FALSE(a_->TakeDoorbellRequest());
  Send(a_.get(), "x");
  Send(a_.get(), "y");
  EXPECT_TRUE(a_->TakeDoorbellRequest());
  EXPECT_FALSE(a_->TakeDoorbellRequest());
  b_->SetArmed(false);
  Send(a_.get(), "z");
  EXPECT_FALSE(a_->TakeDoorbellRequest());
}

TEST_F(FakeLinkTest, OnlyLifelinesRing) {
  a_->RingDoorbell();
  EXPECT_EQ(link_.StepAll(), 0);
  LinkOptions options;
  options.is_lifeline = true;
  Link lifeline(options);
  auto a = lifeline.Take(Side::kA);
  auto b = lifeline.Take(Side::kB);
  b->Start(&at_b_);
  a->RingDoorbell();
  EXPECT_TRUE(lifeline.Step());
  EXPECT_EQ(at_b_.Take(), Lines{"doorbell"});
  EXPECT_EQ(lifeline.counters(Side::kA).doorbells, 1u);
}

}  // namespace
}  // namespace fake
}  // namespace fabric
}  // namespace penstock
