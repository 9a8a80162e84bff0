// Tests that one side learns, in order, of everything that the other side does
// to a stream.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

TEST_F(SessionTest, CallAndAnswerArriveInOrder) {
  Open();
  client_->Open(1);
  EXPECT_TRUE(client_->Send(1, "question"));
  (*client_)->output().SendHalfClose(1);
  Run();
  EXPECT_EQ(server_->Take(), Lines{"opened 1"});
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message question", "half close"}));
  (*server_)->output().SendHeaders(1, "initial");
  EXPECT_TRUE(server_->Send(1, "answer"));
  (*server_)->output().SendTrailers(1, "status");
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            (Lines{"headers initial", "message answer", "trailers status"}));
}

TEST_F(SessionTest, NothingLeavesBeforeFlush) {
  Open();
  client_->Open(1);
  EXPECT_EQ(lifeline_->waiting(kServer), 0u);
  client_->Send(1, "m");
  client_->Flush();
  EXPECT_EQ(lifeline_->waiting(kServer), 1u);  // one message for all frames
}

TEST_F(SessionTest, EmptyAndCompressedMessagesArriveAsSuch) {
  Open();
  client_->Open(1);
  client_->Send(1, "");
  (*client_)->output().SendMessage(1, ToPayload("short"), /*compressed=*/true);
  (*client_)->output().SendMessage(1, ToPayload(Letters(3000)),
                                   /*compressed=*/true);
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message ", "compressed message short",
                   "compressed " + MessageLine(Letters(3000))}));
}

TEST_F(SessionTest, AMessageAboveTheProtocolsLimitFailsItsStreamOnly) {
  Open();
  client_->Open(1);
  client_->Open(2);
  Run();
  const auto owner = std::make_shared<char>();
  const memory::Bytes tebibyte{reinterpret_cast<const uint8_t*>(owner.get()),
                               size_t{1} << 40, owner};
  memory::Payload message(tebibyte);
  message.Append(tebibyte);
  (*client_)->output().SendMessage(1, message, /*compressed=*/false);
  client_->Send(2, "goes on");
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset RESOURCE_EXHAUSTED: a message of 2199023255552 bytes "
                  "cannot be sent; the most are 1099511627776"});
  EXPECT_EQ(server_->stream(2).Take(),
            (Lines{"headers open", "message goes on"}));
}

TEST_F(SessionTest, EntriesOfMetadataComeBeforeWhatFollowsThem) {
  Open();
  (*client_)->SendEntry(192, "entry");
  client_->Open(1);
  Run();
  EXPECT_EQ(server_->Take(), (Lines{"entry 192 entry", "opened 1"}));
  server_->entry_status = absl::InvalidArgumentError("why");
  (*client_)->SendEntry(192, "again");
  Run();
  EXPECT_EQ(server_->Take(),
            (Lines{"entry 192 again", "closed INVALID_ARGUMENT: why"}));
}

TEST_F(SessionTest, ShortMessagesNeedNotOutliveTheCall) {
  Open();
  client_->Open(1);
  std::string message = "short";
  EXPECT_TRUE((*client_)->output().SendEager(1, message, /*compressed=*/true));
  message = "other";
  EXPECT_TRUE((*client_)->output().SendEager(1, "", false));
  EXPECT_FALSE((*client_)->output().SendEager(1, Letters(3 << 20), false));
  EXPECT_TRUE((*client_)->output().SendEager(1, "last", false, /*last=*/true));
  EXPECT_TRUE((*client_)->output().SendEager(2, "no such stream", false));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "compressed message short", "message ",
                   "message last", "half close"}));
}

TEST_F(SessionTest, MessagesThatWaitToBeAttachedAreKept) {
  Open();
  server_->attaches = false;
  client_->Open(1);
  for (size_t size : {0, 5, 512, 513, 5000}) client_->Send(1, Letters(size));
  Run();
  client_->Open(3);  // the frames of stream 3 pass through the same memory
  client_->Send(3, Letters(5, 7));
  Run();
  server_->Attach(1);
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message ", MessageLine(Letters(5)),
                   MessageLine(Letters(512)), MessageLine(Letters(513)),
                   MessageLine(Letters(5000))}));
}

TEST_F(SessionTest, HalfCloseMayComeWithTheLastMessage) {
  Open();
  // Sends messages of sizes that are sent eagerly, in fragments, and announced.
  uint32_t stream = 0;
  for (size_t size : {0, 5, 20000, 100000, 3 << 20}) {
    client_->Open(++stream);
    Lines expected{"headers open"};
    (*client_)->output().SendMessage(stream, ToPayload(Letters(size)),
                                     /*compressed=*/false, /*last=*/true);
    expected.push_back(MessageLine(Letters(size)));
    expected.push_back("half close");
    Run();
    EXPECT_EQ(server_->stream(stream).Take(), expected) << size;
  }
}

TEST_F(SessionTest, MessagesOfAnySizeKeepTheirOrder) {
  Open();
  client_->Open(1);
  Lines expected{"headers open"};
  for (size_t size : {0, 1, 1023, 1024, 1025, 4096, 4097, 60000, 16, 100000}) {
    client_->Send(1, Letters(size, size));
    expected.push_back(MessageLine(Letters(size, size)));
  }
  (*client_)->output().SendHalfClose(1);
  expected.push_back("half close");
  Run();
  EXPECT_EQ(server_->stream(1).Take(), expected);
  EXPECT_EQ((*server_)->counters().messages_received(), 10u);
  EXPECT_EQ((*server_)->counters().bytes_received(),
            (*client_)->counters().bytes_sent());
}

TEST_F(SessionTest, MessagesUpToTheEagerLimitAreNotExposed) {
  Open();
  client_->Open(1);
  client_->Send(1, Letters(1024));
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
  client_->Send(1, Letters(1025));
  EXPECT_EQ(lifeline_->exposed(kClient), 1u);
  Run();
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
  EXPECT_EQ(lifeline_->counters(kServer).read_bytes, 1025u);
}

TEST_F(SessionTest, MessageThatCannotBeExposedGoesInFragments) {
  Open();
  client_->Open(1);
  lifeline_->FailNthExpose(kClient, 1);
  client_->Send(1, Letters(50000));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", MessageLine(Letters(50000))}));
  EXPECT_EQ(lifeline_->counters(kServer).reads, 0u);
}

TEST_F(SessionTest, LongMetadataArrivesWhole) {
  Open();
  client_->Attach(1);
  (*client_)->output().SendHeaders(1, Letters(40000, 1));
  Run();
  (*server_)->output().SendTrailers(1, Letters(16353, 2));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            Lines{"headers " + Brief(Letters(40000, 1))});
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"trailers " + Brief(Letters(16353, 2))});
}

TEST_F(SessionTest, MessageBeingReadHoldsBackItsOwnStreamOnly) {
  Open();
  client_->Open(1);
  client_->Open(2);
  Run();
  client_->Send(1, Letters(5000));
  (*client_)->output().SendHalfClose(1);
  client_->Send(2, "short");
  client_->Flush();
  EXPECT_TRUE(Step(lifeline_.get(), kServer));
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
  EXPECT_EQ(server_->stream(2).Take(),
            (Lines{"headers open", "message short"}));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(5000)), "half close"}));
}

TEST_F(SessionTest, ResetOfTheClientReachesTheServer) {
  Open();
  client_->Open(1);
  Run();
  (*client_)->output().SendReset(1, absl::CancelledError("never mind"));
  (*client_)->streams().Detach(1);
  Run();
  EXPECT_EQ(
      server_->stream(1).Take(),
      (Lines{"headers open", "reset CANCELLED: never mind, by the peer"}));
  EXPECT_FALSE((*server_)->streams().IsUnattached(1));
}

TEST_F(SessionTest, ResetOfTheServerReachesTheClient) {
  Open();
  client_->Open(1);
  Run();
  (*server_)->output().SendReset(1, absl::InternalError("oops"));
  (*server_)->streams().Detach(1);
  client_->Send(1, "crosses it");
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset INTERNAL: oops, by the peer"});
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
}

// gRPC shows an error without a text as its own source lines.
TEST_F(SessionTest, ResetWithoutAReasonGetsAText) {
  Open();
  client_->Open(1);
  Run();
  (*server_)->output().SendReset(1, absl::UnavailableError(""));
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset UNAVAILABLE: the peer gave no reason, by the peer"});
}

TEST_F(SessionTest, ResetsThatCrossLeaveNothing) {
  Open();
  client_->Open(1);
  Run();
  client_->Send(1, Letters(5000));
  (*client_)->output().SendReset(1, absl::CancelledError("a"));
  (*server_)->output().SendReset(1, absl::CancelledError("b"));
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset CANCELLED: b, by the peer"});
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
  EXPECT_TRUE((*client_)->drained());
  EXPECT_TRUE((*server_)->drained());
}

TEST_F(SessionTest, ResetOvertakesAMessageThatIsBeingRead) {
  Open();
  client_->Open(1);
  client_->Send(1, Letters(50000));
  Run();
  server_->stream(1).Take();
  client_->Send(1, Letters(50000, 1));
  (*client_)->output().SendReset(1, absl::CancelledError("never mind"));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            Lines{"reset CANCELLED: never mind, by the peer"});
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(SessionTest, StreamsOfOneSideDoNotDisturbOneAnother) {
  Open();
  for (uint32_t stream : {1, 2, 3}) client_->Open(stream);
  Run();
  (*client_)->output().SendReset(2, absl::CancelledError("x"));
  (*client_)->streams().Detach(2);
  for (uint32_t stream : {1, 2, 3}) client_->Send(stream, "m");
  Run();
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open", "message m"}));
  EXPECT_EQ(server_->stream(2).Take().back(),
            "reset CANCELLED: x, by the peer");
  EXPECT_EQ(server_->stream(3).Take(), (Lines{"headers open", "message m"}));
}

TEST_F(SessionTest, DetachedStreamHearsNothingMore) {
  Open();
  client_->Open(1);
  client_->Send(1, Letters(5000));
  client_->Send(1, "two");
  Step(lifeline_.get(), kServer);
  client_->Flush();
  Step(lifeline_.get(), kServer);
  server_->stream(1).Take();
  (*server_)->streams().Detach(1);
  Run();
  client_->Send(1, "three");
  Run();
  EXPECT_EQ(server_->stream(1).Take(), Lines{});
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(SessionTest, EventMayDetachItsStream) {
  Open();
  client_->Open(1);
  client_->Send(1, "one");
  client_->Send(1, "two");
  (*client_)->output().SendHalfClose(1);
  server_->stream(1).on_event = [this] { (*server_)->streams().Detach(1); };
  Run();
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
}

TEST_F(SessionTest, EventMayAnswerAtOnce) {
  Open();
  client_->Open(1);
  client_->Send(1, "ping");
  server_->stream(1).on_event = [this] { server_->Send(1, "pong"); };
  Run();
  EXPECT_EQ(client_->stream(1).Take(), (Lines{"message pong", "message pong"}));
}

TEST_F(RawPeerTest, StreamsOpenInGrowingOrderOnce) {
  Open();
  for (uint32_t stream : {3u, 1u, 3u, 0u, 7u, 4000000000u}) {
    raw_->Send(Header(FrameType::kHeaders, stream), "h");
  }
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"opened 3", "opened 7", "opened 4000000000"}));
  EXPECT_EQ(peer_->stream(3).Take(), (Lines{"headers h", "headers h"}));
}

TEST_F(RawPeerTest, ServerCannotOpenAStream) {
  Open(ClientConfig());
  raw_->Send(Header(FrameType::kHeaders, 1), "h");
  raw_->Send(Header(FrameType::kMessage, 1), "m");
  raw_->Send(Header(FrameType::kTrailers, 1), "t");
  raw_->Send(Header(FrameType::kReset, 1, 1), "r");
  raw_->Send(Header(FrameType::kCredit, 1, 1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{});
  EXPECT_FALSE((*peer_)->streams().IsUnattached(1));
  EXPECT_TRUE((*peer_)->drained());
}

}  // namespace
}  // namespace session
}  // namespace penstock
