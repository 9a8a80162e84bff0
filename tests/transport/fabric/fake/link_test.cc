#include "transport/fabric/fake/link.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace fake {
namespace {

// Writes down what happens, in order: "message hi", "read 3 OK".
class Recorder : public EndpointEvents {
 public:
  void OnMessage(absl::Span<const uint8_t> message) override {
    Add("message " + std::string(message.begin(), message.end()));
  }
  void OnWritable() override { Add("writable"); }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    Add(absl::StrCat("read ", cookie, " ", status.ok() ? "OK" : "failed"));
  }
  void OnDoorbell() override { Add("doorbell"); }
  void OnBroken(const absl::Status& cause) override { Add("broken"); }

  std::vector<std::string> Take() { return std::move(lines_); }

  std::function<void()> on_event;

 private:
  void Add(std::string line) {
    lines_.push_back(std::move(line));
    if (on_event) on_event();
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class FakeLinkTest : public ::testing::Test {
 protected:
  explicit FakeLinkTest(const LinkOptions& options = LinkOptions())
      : link_(options), a_(link_.Take(Side::kA)), b_(link_.Take(Side::kB)) {
    a_->Start(&at_a_);
    b_->Start(&at_b_);
  }

  static bool Send(Endpoint* from, absl::string_view text) {
    return from->Send(
        {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  // "abcdef...", in two pieces.
  static memory::Payload Letters(size_t size) {
    memory::Payload payload;
    for (size_t at : {size_t{0}, size / 3}) {
      const size_t end = at == 0 ? size / 3 : size;
      memory::Block block = memory::AllocateBlock(end - at).value();
      for (size_t i = at; i < end; ++i) block.data.get()[i - at] = 'a' + i % 26;
      payload.Append(block.AsBytes());
    }
    return payload;
  }
  void Read(Endpoint* from, const RemoteRegion& region, uint64_t offset,
            std::string* into, uint64_t cookie) {
    from->Read(region, offset,
               {reinterpret_cast<uint8_t*>(&(*into)[0]), into->size()}, cookie);
  }

  Recorder at_a_;
  Recorder at_b_;
  Link link_;
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
};

TEST_F(FakeLinkTest, NothingMovesByItself) {
  ASSERT_TRUE(Send(a_.get(), "one"));
  ASSERT_TRUE(Send(a_.get(), "two"));
  EXPECT_EQ(at_b_.Take(), Lines{});
  EXPECT_EQ(link_.waiting(Side::kB), 2u);
  EXPECT_TRUE(b_->HasInput());
  EXPECT_FALSE(a_->HasInput());
  EXPECT_FALSE(a_->Poll());
  EXPECT_TRUE(link_.Step());
  EXPECT_EQ(at_b_.Take(), Lines{"message one"});
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"message two"});
  EXPECT_FALSE(b_->HasInput());
  EXPECT_FALSE(b_->Poll());
  EXPECT_FALSE(link_.Step());
  EXPECT_EQ(link_.counters(Side::kA).messages, 2u);
  EXPECT_EQ(link_.counters(Side::kA).message_bytes, 6u);
  EXPECT_EQ(link_.counters(Side::kB).messages, 0u);
}

TEST_F(FakeLinkTest, StepsGoByAgeOrBySide) {
  Send(a_.get(), "1");
  Send(b_.get(), "2");
  Send(a_.get(), "3");
  EXPECT_TRUE(link_.Step(Side::kA));
  EXPECT_FALSE(link_.Step(Side::kA));
  EXPECT_EQ(at_a_.Take(), Lines{"message 2"});
  EXPECT_EQ(link_.Deliver(1), 1);
  EXPECT_EQ(at_b_.Take(), Lines{"message 1"});
  EXPECT_EQ(link_.StepAll(), 1);
  EXPECT_EQ(at_b_.Take(), Lines{"message 3"});
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
  EXPECT_EQ(at_b_.Take(), Lines{"message early"});
}

TEST_F(FakeLinkTest, OnePollIsBounded) {
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(Send(a_.get(), "x"));
  std::string into(1, '.');
  Read(b_.get(), RemoteRegion(), 0, &into, 1);
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take().size(), 64u);
  EXPECT_EQ(link_.waiting(Side::kB), 1u);
}

class FewCredits : public FakeLinkTest {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.credits = 2;
    options.max_message_bytes = 8;
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
  EXPECT_EQ(at_a_.Take(), (Lines{"message back", "writable"}));
  EXPECT_TRUE(Send(a_.get(), "3"));
  EXPECT_FALSE(Send(a_.get(), "4"));
  EXPECT_EQ(link_.StepAll(), 3);
  EXPECT_EQ(at_a_.Take(), Lines{"writable"});
}

TEST_F(FewCredits, MessageAboveTheMaximumBreaksTheLink) {
  EXPECT_TRUE(Send(a_.get(), "12345678"));
  EXPECT_TRUE(Send(a_.get(), "123456789"));
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), Lines{"broken"});
}

TEST_F(FakeLinkTest, ReadsCopyWhenTheyComplete) {
  const RemoteRegion region = a_->Expose(Letters(90)).value().region;
  std::string into(40, '.');
  Read(b_.get(), region, 20, &into, 7);
  EXPECT_EQ(into, std::string(40, '.'));
  EXPECT_TRUE(b_->HasInput());
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"read 7 OK"});
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(into[i], 'a' + char((i + 20) % 26));
  EXPECT_EQ(link_.counters(Side::kB).reads, 1u);
  EXPECT_EQ(link_.counters(Side::kB).read_bytes, 40u);
  EXPECT_EQ(link_.exposed(Side::kA), 1u);
}

TEST_F(FakeLinkTest, ReadsOutsideOfWhatIsExposedFail) {
  const RemoteRegion good = a_->Expose(Letters(10)).value().region;
  std::string into(4, '.');
  uint64_t cookie = 0;
  Read(b_.get(), good, 7, &into, ++cookie);
  Read(b_.get(), good, 11, &into, ++cookie);
  Read(b_.get(), good, ~uint64_t{0}, &into, ++cookie);
  Read(b_.get(), RemoteRegion{good.key, 0, 10}, 0, &into, ++cookie);
  Read(b_.get(), RemoteRegion{good.key, good.offset, 11}, 0, &into, ++cookie);
  Read(b_.get(), RemoteRegion{good.key + 1, good.offset, 10}, 0, &into,
       ++cookie);
  Read(a_.get(), good, 0, &into, ++cookie);  // the owner's own
  std::string large(4097, '.');
  Read(b_.get(), good, 0, &large, ++cookie);
  EXPECT_EQ(link_.StepAll(), 8);
  Lines lines = at_b_.Take();
  for (const std::string& line : at_a_.Take()) lines.push_back(line);
  EXPECT_EQ(lines.size(), 8u);
  for (const std::string& line : lines) {
    EXPECT_NE(line.find("failed"), std::string::npos) << line;
  }
  EXPECT_EQ(into, "....");
}

TEST_F(FakeLinkTest, WithdrawnRegionCannotBeRead) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  std::string into(4, '.');
  Read(b_.get(), region, 0, &into, 1);
  a_->Withdraw(region);
  a_->Withdraw(region);
  b_->Poll();
  EXPECT_EQ(at_b_.Take(), Lines{"read 1 failed"});
  EXPECT_EQ(link_.exposed(Side::kA), 0u);
}

TEST_F(FakeLinkTest, CompletionsOfReadsCanBeReordered) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  std::string into(3, '.');
  for (uint64_t i = 0; i < 3; ++i) Read(b_.get(), region, i, &into, i);
  Send(a_.get(), "x");
  link_.SetReadOrder(Side::kB, [](size_t waiting) { return waiting - 1; });
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(),
            (Lines{"read 2 OK", "read 1 OK", "read 0 OK", "message x"}));
}

TEST_F(FakeLinkTest, NthReadFailsAndTheLinkStays) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  link_.FailNthRead(Side::kB, 2);
  std::string into(3, '.');
  for (uint64_t i = 1; i <= 3; ++i) Read(b_.get(), region, 0, &into, i);
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(), (Lines{"read 1 OK", "read 2 failed", "read 3 OK"}));
}

TEST_F(FakeLinkTest, NthExposeFindsNoRoom) {
  link_.FailNthExpose(Side::kA, 2);
  EXPECT_TRUE(a_->Expose(Letters(9)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(a_->Expose(Letters(9)).status()));
  EXPECT_TRUE(a_->Expose(Letters(9)).ok());
}

TEST_F(FakeLinkTest, NthSendLosesItsMessageAndTheLink) {
  link_.FailNthSend(Side::kA, 2);
  EXPECT_TRUE(Send(a_.get(), "1"));
  link_.StepAll();
  EXPECT_TRUE(Send(a_.get(), "2"));
  EXPECT_TRUE(Send(a_.get(), "3"));
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), (Lines{"message 1", "broken"}));
}

TEST_F(FakeLinkTest, DropEndsReadsThenBreaksOnce) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  std::string into(3, '.');
  Read(b_.get(), region, 0, &into, 1);
  Send(a_.get(), "lost");
  Read(b_.get(), region, 0, &into, 2);
  link_.Drop();
  link_.Drop();
  Read(b_.get(), region, 0, &into, 3);  // ends at once
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
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  Send(a_.get(), "before");
  link_.DropOneSide(Side::kA);
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{"broken"});
  EXPECT_EQ(at_b_.Take(), Lines{"message before"});
  EXPECT_TRUE(Send(b_.get(), "into the void"));
  std::string into(3, '.');
  Read(b_.get(), region, 0, &into, 1);
  link_.StepAll();
  EXPECT_EQ(at_a_.Take(), Lines{});
  EXPECT_EQ(at_b_.Take(), Lines{"read 1 failed"});
  a_.reset();
  link_.StepAll();
  EXPECT_EQ(at_b_.Take(), Lines{"broken"});
}

TEST_F(FakeLinkTest, DestroyedEndIsSeenAfterItsLastMessages) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  std::string into(3, '.');
  Read(b_.get(), region, 0, &into, 1);
  Send(a_.get(), "last words");
  a_.reset();
  EXPECT_TRUE(b_->HasInput());
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(),
            (Lines{"read 1 failed", "message last words", "broken"}));
  EXPECT_FALSE(b_->Poll());
  EXPECT_EQ(at_a_.Take(), Lines{});
}

TEST_F(FakeLinkTest, EventMayDestroyTheEndpoint) {
  Send(a_.get(), "1");
  Send(a_.get(), "2");
  at_b_.on_event = [this] { b_.reset(); };
  EXPECT_TRUE(b_->Poll());
  EXPECT_EQ(at_b_.Take(), Lines{"message 1"});
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

TEST_F(FakeLinkTest, LoadNeedsTheCapability) {
  const RemoteRegion region = a_->Expose(Letters(10)).value().region;
  EXPECT_TRUE(absl::IsUnimplemented(b_->Load(region).status()));
}

class Loading : public FakeLinkTest {
 protected:
  static LinkOptions Options() {
    LinkOptions options;
    options.can_load = true;
    return options;
  }
  Loading() : FakeLinkTest(Options()) {}
};

TEST_F(Loading, LoadedBytesAreThoseThatAreLent) {
  Exposure exposure = a_->Expose(Letters(100)).value();
  ASSERT_EQ(exposure.stable.pieces().size(), 1u);
  memory::Bytes bytes = b_->Load(exposure.region).value();
  EXPECT_EQ(bytes.data, exposure.stable.pieces()[0].data);
  EXPECT_EQ(bytes.size, 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(bytes.data[i], 'a' + i % 26);
  EXPECT_EQ(link_.counters(Side::kB).loads, 1u);
}

TEST_F(Loading, LoansComeBackWithTheLastShare) {
  const RemoteRegion region = a_->Expose(Letters(100)).value().region;
  memory::Bytes bytes = b_->Load(region).value();
  memory::Bytes part = bytes.Part(5, 1);
  EXPECT_EQ(link_.loans(Side::kB), 1);
  bytes = memory::Bytes();
  a_->Withdraw(region);
  a_.reset();
  b_.reset();
  EXPECT_EQ(link_.loans(Side::kB), 1);
  EXPECT_EQ(part.data[0], 'f');
  part = memory::Bytes();
  EXPECT_EQ(link_.loans(Side::kB), 0);
}

TEST_F(Loading, WithdrawnOrForeignRegionIsNotLoaded) {
  const RemoteRegion region = a_->Expose(Letters(100)).value().region;
  EXPECT_FALSE(b_->Load(RemoteRegion{region.key, region.offset, 101}).ok());
  EXPECT_FALSE(b_->Load(RemoteRegion{region.key, 0, 100}).ok());
  EXPECT_FALSE(a_->Load(region).ok());
  a_->Withdraw(region);
  EXPECT_TRUE(absl::IsNotFound(b_->Load(region).status()));
  EXPECT_EQ(link_.loans(Side::kB), 0);
}

}  // namespace
}  // namespace fake
}  // namespace fabric
}  // namespace penstock
