// Tests the number of bytes that are prefetched for the application.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

TEST_F(MessageReaderTest, ReadsStartWithinTheBudget) {
  Begin(1, Expose(7, 6000));
  Begin(2, Expose(8, 4000));
  Begin(3, Expose(9, 1));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 6000), "released 8",
                           Read(8, 2, 4000)}));
  reader_->Consumed(4000);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 9", Read(9, 3, 1)}));
}

TEST_F(MessageReaderTest, MessageAboveTheBudgetStartsWhileNothingIsInUse) {
  Begin(1, Expose(7, 1));
  Begin(1, Expose(8, 50000));
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 1)}));
  reader_->Consumed(1);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 8", Read(8, 1, 50000)}));
}

TEST_F(MessageReaderTest, DeferredReadsStartInOrder) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 9000));
  Begin(3, Expose(9, 10));
  Run();
  Take();
  reader_->Consumed(5000);
  Run();
  EXPECT_EQ(Take(), Lines{});  // 8 does not fit, and 9 must not overtake 8
  reader_->Consumed(5000);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 8", Read(8, 2, 9000), "released 9",
                           Read(9, 3, 10)}));
}

TEST_F(MessageReaderTest, WantedMessageStartsBudgetOrNot) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 9000));
  Begin(3, Expose(9, 9000));
  Run();
  Take();
  reader_->Want(9);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 9", Read(9, 3, 9000)}));
  reader_->Want(9);
  reader_->Want(7);
  reader_->Want(100);
  Run();
  EXPECT_EQ(Take(), Lines{});
}

// Tests a wanted message behind abandoned reads. If wanted messages never
// waited, a hostile peer could leave reads of ended streams unanswered, one
// stream after another, and make the session use any amount of memory.
TEST_F(MessageReaderTest, WantedMessageWaitsForReadsThatAreAbandoned) {
  Begin(1, Expose(7, 9000));
  Begin(2, Expose(8, 9000));
  reader_->Want(8);  // 7 is being read, too: the budget does not block 8
  reader_->Abandon(1);
  reader_->Abandon(2);
  Begin(3, Expose(9, 100));
  Begin(3, Expose(10, 100));
  const uint64_t reads = fast_reads();
  reader_->Want(10);
  EXPECT_EQ(fast_reads(), reads);
  EXPECT_EQ(Take(), Lines{});
  Run();  // the peer answers late
  EXPECT_EQ(Take(), (Lines{"released 7", "released 8", "released 10",
                           Read(10, 3, 100), "released 9", Read(9, 3, 100)}));
}

TEST_F(MessageReaderTest, DeferredMessageOfAStreamThatEndsDoesNotStart) {
  Begin(1, Expose(7, 10000));
  Begin(1, Expose(8, 9000));
  Begin(1, Expose(9, 9000));
  const uint64_t reads = fast_reads();
  reader_->Abandon(1);
  EXPECT_EQ(Take(), (Lines{"released 8", "released 9"}));
  EXPECT_EQ(fast_reads(), reads);
  Run();
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(reader_->pending_parts(), 0u);
}

TEST_F(MessageReaderTest, WantedMessageOfAStreamThatEndsDoesNotStart) {
  Begin(1, Expose(7, 9000));
  Begin(2, Expose(8, 9000));
  reader_->Want(8);
  reader_->Abandon(1);
  reader_->Abandon(2);
  Begin(3, Expose(9, 100));
  reader_->Want(9);  // waits for the abandoned reads
  const uint64_t reads = fast_reads();
  reader_->Abandon(3);
  EXPECT_EQ(Take(), Lines{"released 9"});
  EXPECT_EQ(fast_reads(), reads);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "released 8"}));
  EXPECT_EQ(reader_->in_use(), 0u);
}

// Regression test: 60,000 waiting messages must not take quadratic time.
TEST_F(MessageReaderTest, AnyNumberThatWaitIsAbandonedOneByOne) {
  Begin(1, Expose(1, 10000));
  wire::Announce announce = Expose(2, 5000);
  constexpr uint64_t kMany = 60000;
  for (announce.id = 2; announce.id < kMany; ++announce.id) {
    Begin(static_cast<uint32_t>(announce.id), announce);
  }
  for (uint32_t stream = kMany - 1; stream > 1; --stream) {
    reader_->Abandon(stream);
  }
  EXPECT_EQ(reader_->pending_parts(), 1u);
}

TEST_F(MessageReaderTest, FailedReadReturnsItsBudget) {
  Begin(1, Expose(7, 4000));
  Begin(2, Expose(8, 9000));
  fast_.Drop();
  lifeline_.FailNthRead(Side::kB, 1);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "failed 7 of 1: a fake read failed",
                           "released 8", Read(8, 2, 9000)}));
}

TEST_F(MessageReaderTest, ReadThatStartsOverTakesItsBudgetOnce) {
  fast_.FailNthRead(Side::kB, 1);
  Begin(1, Expose(7, 6000));
  Run();
  Begin(2, Expose(8, 4000));
  Run();
  EXPECT_EQ(Take().size(), 4u);
}

TEST_F(MessageReaderTest, AbandonedReadReturnsItsBudget) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 9000));
  reader_->Abandon(1);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "released 8", Read(8, 2, 9000)}));
}

TEST_F(MessageReaderTest, AbandonedReadOfALostPathReturnsItsBudget) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 9000));
  reader_->Abandon(1);
  reader_->LoseFastPath();
  readers_[1].reset();
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", "released 8", Read(8, 2, 9000)}));
}

TEST_F(MessageReaderTest, AbandonedMessageThatWaitsIsReleasedAtOnce) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 9000));
  Begin(2, Expose(9, 9000));
  reader_->Abandon(2);
  EXPECT_EQ(Take(), (Lines{"released 8", "released 9"}));
  Run();
  reader_->Consumed(10000);
  Run();
  EXPECT_EQ(Take(), (Lines{"released 7", Read(7, 1, 10000)}));
}

TEST_F(MessageReaderTest, DeferredMessageGoesOverThePathThatIsThereByThen) {
  Begin(1, Expose(7, 10000));
  Begin(2, Expose(8, 10000));
  Run();
  reader_->LoseFastPath();
  reader_->Consumed(10000);
  Run();
  EXPECT_EQ(Take().size(), 4u);
  EXPECT_EQ(lifeline_reads(), 3u);
}

// Tests the read budget through a stream.
class ReadBudgetTest : public SessionTest {
 protected:
  ReadBudgetTest() { server_config_.read_budget = 10000; }

  // Uses up the budget by stream 1, whose reader does not consume the message.
  void UseBudget() {
    Open();
    for (uint32_t stream : {1, 2}) client_->Open(stream);
    client_->Send(1, Letters(10000));
    Run();
    EXPECT_EQ(server_->stream(1).Take().size(), 2u);
    server_->stream(2).Take();
  }
};

TEST_F(ReadBudgetTest, MessageThatNobodyWantsWaits) {
  UseBudget();
  client_->Send(2, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{});
  (*server_)->input().Consumed(1);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000))});
}

TEST_F(ReadBudgetTest, WantedMessageStartsAtOnce) {
  UseBudget();
  client_->Send(2, Letters(5000));
  Run();
  (*server_)->input().WantMessage(2);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000))});
}

TEST_F(ReadBudgetTest, MessageThatIsWantedBeforeItComesStartsAtOnce) {
  UseBudget();
  (*server_)->input().WantMessage(2);
  client_->Send(2, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000))});
}

TEST_F(ReadBudgetTest, WantIsForOneMessage) {
  UseBudget();
  (*server_)->input().WantMessage(2);
  client_->Send(2, Letters(5000, 1));
  client_->Send(2, Letters(5000, 2));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000, 1))});
  (*server_)->input().Consumed(2);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{});
  (*server_)->input().WantMessage(2);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000, 2))});
}

TEST_F(ReadBudgetTest, EagerMessageThatIsTakenEndsTheWant) {
  UseBudget();
  (*server_)->input().WantMessage(2);
  client_->Send(2, "eager");
  Run();
  (*server_)->input().Consumed(2);
  client_->Send(2, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{"message eager"});
}

TEST_F(ReadBudgetTest, EagerMessageThatIsTakenReturnsNothing) {
  Open();
  for (uint32_t stream : {1, 2}) client_->Open(stream);
  client_->Send(1, Letters(5001));
  client_->Send(2, "eager");
  client_->Send(2, Letters(5000));  // one byte too many for the budget
  Run();
  server_->stream(2).Take();
  (*server_)->input().Consumed(2);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{});
}

TEST_F(ReadBudgetTest, DetachedStreamReturnsWhatItHasNotTaken) {
  UseBudget();
  client_->Send(2, Letters(5000));
  Run();
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000))});
}

TEST_F(ReadBudgetTest, DetachedStreamReadsNoMore) {
  UseBudget();
  client_->Send(2, Letters(5000));
  Run();
  (*server_)->streams().Detach(2);
  Run();
  EXPECT_EQ(lifeline_->counters(kServer).read_bytes, 10000u);
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(ReadBudgetTest, StreamThatEndsWhileItReadsReturnsTheBudget) {
  Open();
  for (uint32_t stream : {1, 2}) client_->Open(stream);
  Run();
  server_->stream(2).Take();
  client_->Send(1, Letters(10000));
  client_->Send(2, Letters(5000));
  (*client_)->output().SendReset(1, absl::CancelledError("x"));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{MessageLine(Letters(5000))});
}

// A fixture whose peer announces messages with an id of its choice.
class ChosenIdTest : public RawPeerTest {
 protected:
  void OpenStreams() {
    Config config = ServerConfig();
    config.read_budget = 10000;
    Open(config);
    for (uint32_t stream : {1, 2}) {
      raw_->Send(Header(FrameType::kHeaders, stream));
    }
  }
  void Announce(uint32_t stream, uint64_t id, size_t size) {
    wire::Announce announce;
    announce.id = id;
    announce.length = size;
    announce.regions.push_back(Announced(
        0, raw_->endpoint()->Expose(ToPayload(Letters(size)), 1)->region));
    raw_->Send(Header(FrameType::kAnnounce, stream),
               wire::EncodeAnnounce(announce, wire::kVersion));
    Run();
  }
  uint64_t read_bytes() { return lifeline_.counters(Side::kB).read_bytes; }
};

TEST_F(ChosenIdTest, IdThatComesTwiceDoesNotWidenTheBudget) {
  OpenStreams();
  Announce(1, 7, 1);
  Announce(1, 7, 9000);
  (*peer_)->input().Consumed(1);  // one byte
  Run();
  Announce(2, 8, 5000);
  EXPECT_LE(read_bytes(), 9001u);
}

TEST_F(ChosenIdTest, IdOfEagerMessagesDoesNotWidenTheBudget) {
  OpenStreams();
  raw_->Send(Header(FrameType::kMessage, 1), "e");
  Announce(1, 0, 9000);
  (*peer_)->input().Consumed(1);
  Run();
  Announce(2, 8, 5000);
  EXPECT_LE(read_bytes(), 9000u);
}

// Sends metadata that piles up behind a message that is never read.
TEST_F(ChosenIdTest, MetadataThatPilesUpEndsTheSession) {
  OpenStreams();
  wire::Announce announce;
  announce.id = 1;
  announce.length = 1;
  announce.regions = {{0, {{99, 0, 1}}}};  // the read waits in the link
  raw_->Send(Header(FrameType::kAnnounce, 1),
             wire::EncodeAnnounce(announce, wire::kVersion));
  for (int i = 0; i < 20; ++i) raw_->Send(Header(FrameType::kHeaders, 1));
  while (lifeline_.waiting(Side::kB) > 0 && !(*peer_)->closed()) {
    lifeline_.Step(Side::kB);
  }
  EXPECT_TRUE((*peer_)->closed());
}

}  // namespace
}  // namespace session
}  // namespace penstock
