// Tests the beginning and the end of a session, and the events that belong to
// no stream.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

TEST_F(SessionTest, HelloesBothWaysMakeTheClientConnect) {
  Begin();
  EXPECT_FALSE((*client_)->greeted());
  Run();
  EXPECT_TRUE((*client_)->greeted());
  EXPECT_TRUE((*server_)->greeted());
  EXPECT_EQ(client_->Take(),
            Lines{"connect shm to server's with 0123456789abcdef"});
  EXPECT_EQ(server_->Take(), Lines{});
}

TEST_F(RawPeerTest, HelloLeavesBeforeAnythingHasCome) {
  Begin();
  Run();
  EXPECT_EQ(raw_->Take(), Lines{"hello"});
  EXPECT_FALSE((*peer_)->greeted());
  EXPECT_EQ(peer_->Take(), Lines{});
}

TEST_F(RawPeerTest, FirstFrameMustBeAHello) {
  for (FrameType type :
       {FrameType::kHeaders, FrameType::kPing, FrameType::kPathReady,
        FrameType::kPathLost, FrameType::kPathWanted}) {
    Link lifeline(LifelineOptions());
    Peer peer(ServerConfig(), lifeline.Take(Side::kB));
    RawPeer raw(lifeline.Take(Side::kA));
    peer->Start();
    raw.Send(Header(type, 1), "12345678");
    lifeline.StepAll();
    EXPECT_EQ(peer.Take(),
              Lines{"closed INVALID_ARGUMENT: the peer did not say hello "
                    "first"});
  }
}

TEST_F(RawPeerTest, AcknowledgementOfNothingMayComeBeforeTheHello) {
  Begin();
  raw_->Send(Header(FrameType::kAck));
  raw_->SendHello();
  Run();
  EXPECT_TRUE((*peer_)->greeted());
  EXPECT_FALSE((*peer_)->closed());
}

TEST_F(RawPeerTest, SecondHelloEndsTheSession) {
  Open();
  raw_->SendHello();
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: the peer said hello twice"});
}

TEST_F(RawPeerTest, MalformedHelloEndsTheSession) {
  Begin();
  raw_->Send(Header(FrameType::kHello), "xx");
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed INVALID_ARGUMENT: malformed hello"});
}

TEST_F(RawPeerTest, HelloOnceTheSessionIsClosedIsIgnored) {
  Begin();
  (*peer_)->Close(absl::UnavailableError("enough"));
  raw_->SendHello();
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed UNAVAILABLE: enough"});
}

TEST_F(RawPeerTest, BytesThatAreNoFrameEndTheSession) {
  Open();
  raw_->SendBytes("these are not the bytes of a frame, though long enough");
  Run();
  const Lines lines = peer_->Take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("closed INVALID_ARGUMENT: malformed frame"), 0u);
}

TEST_F(RawPeerTest, FramesBeforeOneThatIsCutShortStillCount) {
  Open();
  wire::FrameHeader headers = Header(FrameType::kHeaders, 1);
  headers.sequence = 1;
  std::string bytes;
  wire::AppendFrame(headers, "", &bytes);
  raw_->SendBytes(bytes + bytes.substr(0, 31));
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"opened 1",
                   "closed INVALID_ARGUMENT: malformed frame: header cut "
                   "short"}));
  EXPECT_EQ(peer_->stream(1).Take(),
            (Lines{"headers ",
                   "reset UNAVAILABLE: Penstock session closed: malformed "
                   "frame: header cut short"}));
}

TEST_F(RawPeerTest, FramesBehindTheOneThatEndsTheSessionAreIgnored) {
  Open();
  raw_->Send(Header(FrameType::kPing), "short");
  raw_->Send(Header(FrameType::kHeaders, 1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed INVALID_ARGUMENT: malformed id"});
}

TEST_F(RawPeerTest, AcknowledgingWhatWasNeverSentEndsTheSession) {
  Open();
  (*peer_)->SendPing(1);
  (*peer_)->SendPing(2);
  wire::FrameHeader ack = Header(FrameType::kAck);
  ack.ack = 2;
  raw_->Send(ack);
  Run();
  EXPECT_FALSE((*peer_)->closed());
  wire::FrameHeader ping = Header(FrameType::kPing);
  ping.ack = 3;
  raw_->Send(ping, IdPayload(1));
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: the peer acknowledges frames that "
                  "were never sent"});
}

TEST_F(RawPeerTest, InterruptedFragmentsEndTheSession) {
  Open();
  wire::FrameHeader part = Header(FrameType::kHeaders, 1);
  part.flags = wire::kMoreFragments;
  raw_->Send(part, "one");
  raw_->Send(Header(FrameType::kPing), IdPayload(1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed INVALID_ARGUMENT: a fragmented frame "
                                 "was interrupted"});
}

TEST_F(RawPeerTest, MalformedAnnouncementEndsTheSession) {
  Open();
  raw_->Send(Header(FrameType::kAnnounce, 1), "what?");
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: malformed announcement"});
}

TEST_F(SessionTest, GoawayTellsTheLastStreamServed) {
  Open();
  (*server_)->SendGoaway(5, absl::UnavailableError("drain"));
  Run();
  EXPECT_EQ(client_->Take(), Lines{"goaway 5 UNAVAILABLE: drain"});
}

TEST_F(RawPeerTest, StatusCodesThatDoNotExistReadAsUnknown) {
  Open();
  for (uint32_t code : {0u, 1u, 16u, 17u, 4000000000u}) {
    raw_->Send(Header(FrameType::kGoaway, 0, code), "x");
  }
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"goaway 0 UNKNOWN: x", "goaway 0 CANCELLED: x",
                   "goaway 0 UNAUTHENTICATED: x", "goaway 0 UNKNOWN: x",
                   "goaway 0 UNKNOWN: x"}));
}

TEST_F(SessionTest, PingIsAnsweredWithItsCookie) {
  Open();
  (*client_)->SendPing(~uint64_t{0});
  (*client_)->SendPing(7);
  (*server_)->SendPing(8);
  Run();
  EXPECT_EQ(client_->Take(),
            (Lines{"ping", "pong 18446744073709551615", "pong 7"}));
  EXPECT_EQ(server_->Take(), (Lines{"ping", "ping", "pong 8"}));
}

TEST_F(SessionTest, KeepaliveSeesAllInputAndFramesOfStreamsOnly) {
  Open();
  const uint64_t inputs = (*server_)->counters().inputs;
  (*client_)->SendPing(1);
  Run();
  EXPECT_EQ((*client_)->counters().stream_frames_sent, 0u);
  client_->Open(1);
  client_->Send(1, "m");
  (*client_)->output().SendHalfClose(1);
  Run();
  EXPECT_EQ((*client_)->counters().stream_frames_sent, 3u);
  EXPECT_EQ((*server_)->counters().inputs, inputs + 2);
}

TEST_F(SessionTest, NothingIsDrainedBeforeItIsSent) {
  Open();
  EXPECT_TRUE((*client_)->drained());
  (*client_)->SendPing(1);
  EXPECT_FALSE((*client_)->drained());
  client_->Flush();
  EXPECT_TRUE((*client_)->drained());
}

}  // namespace
}  // namespace session
}  // namespace penstock
