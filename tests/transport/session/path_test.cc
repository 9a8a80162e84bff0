// Tests the agreement on a fast path, and the reports about it.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/session/events.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

TEST_F(SessionTest, EachSideSendsOverThePathOnceThePeerIsReady) {
  Open();
  NewLink();
  AddPath(kClient);
  EXPECT_EQ(client_->Take(), Lines{});
  EXPECT_EQ((*client_)->path().Describe().fabric, "tcp");
  AddPath(kServer);
  EXPECT_EQ(server_->Take(), Lines{});
  Step(lifeline_.get(), kServer);
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
  EXPECT_EQ((*server_)->path().Describe().fabric, "shm");
  EXPECT_EQ(client_->Take(), Lines{});
  Step(lifeline_.get(), kClient);
  EXPECT_EQ(client_->Take(), Lines{"path shm (fake) "});
}

TEST_F(SessionTest, ReadinessMayComeBeforeThePath) {
  Open();
  NewLink();
  AddPath(kClient);
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
  AddPath(kServer);
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path shm (fake) "});
}

TEST_F(SessionTest, PathMayBeQuickerThanTheHello) {
  Begin();
  StepAll(lifeline_.get(), kClient);
  client_->Take();
  NewLink();
  AddPath(kServer);
  // Expects that only the hello is in flight.
  EXPECT_EQ(lifeline_->waiting(kClient), 0u);
  AddPath(kClient);
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path shm (fake) "});
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
}

TEST_F(SessionTest, FramesGoOverTheFastPath) {
  OpenWithPath();
  const uint64_t before = lifeline_->counters(kClient).packets;
  client_->Open(1);
  client_->Send(1, "eager");
  client_->Send(1, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open", "message eager",
                                              MessageLine(Letters(5000))}));
  EXPECT_EQ(lifeline_->counters(kClient).packets, before);
  EXPECT_EQ(fast().counters(kServer).read_bytes, 5000u);
}

TEST_F(SessionTest, AnnouncedMessageIsExposedOnBothPaths) {
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, Letters(5000));
  EXPECT_EQ(fast().exposed(kClient), 1u);
  EXPECT_EQ(lifeline_->exposed(kClient), 1u);
  Run();
  EXPECT_EQ(fast().exposed(kClient), 0u);
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(SessionTest, MessageWithoutRoomOnTheFastPathGoesOverTheLifeline) {
  OpenWithPath();
  client_->Open(1);
  fast().FailNthExpose(kClient, 1);
  client_->Send(1, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(1).Take().back(), MessageLine(Letters(5000)));
  EXPECT_EQ(lifeline_->counters(kServer).read_bytes, 5000u);
  EXPECT_EQ(fast().counters(kServer).reads, 0u);
}

TEST_F(SessionTest, LifelineWithoutRoomLeavesTheFastPath) {
  OpenWithPath();
  client_->Open(1);
  lifeline_->FailNthExpose(kClient, 1);
  client_->Send(1, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(1).Take().back(), MessageLine(Letters(5000)));
  EXPECT_EQ(fast().exposed(kClient), 0u);
}

TEST_F(SessionTest, MessageInPlaceStaysWhenThePathIsGone) {
  fast_options_.can_load = true;
  OpenWithPath();
  client_->Open(1);
  server_->stream(1).keeps = true;
  client_->Send(1, Letters(5000));
  Run();
  EXPECT_EQ(fast().loans(kServer), 1);
  fast().Drop();
  Run();
  ASSERT_EQ(server_->stream(1).kept.size(), 1u);
  EXPECT_EQ(ToString(server_->stream(1).kept[0]), Letters(5000));
  server_->stream(1).kept.clear();
  EXPECT_EQ(fast().loans(kServer), 0);
}

TEST_F(SessionTest, SecondPathIsNotTaken) {
  OpenWithPath();
  const std::shared_ptr<fabric::Endpoint> first = (*client_)->path().endpoint();
  NewLink();
  AddPath(kClient);
  EXPECT_EQ((*client_)->path().endpoint(), first);
  EXPECT_EQ(client_->Take(), Lines{});
}

TEST_F(SessionTest, SecondPathBeforeTheHelloIsNotTaken) {
  Begin();
  NewLink();
  AddPath(kServer);
  const std::shared_ptr<fabric::Endpoint> first = (*server_)->path().endpoint();
  NewLink();
  AddPath(kServer);
  EXPECT_EQ((*server_)->path().endpoint(), first);
}

TEST_F(SessionTest, ArmedPeerIsRungOncePerFlush) {
  OpenWithPath();
  server_->PollAll();
  (*server_)->path().endpoint()->SetArmed(true);
  client_->Open(1);
  client_->Send(1, "m");
  client_->Flush();
  client_->Flush();
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 1u);
  Step(lifeline_.get(), kServer);  // the session polls by itself
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open", "message m"}));
  (*server_)->path().endpoint()->SetArmed(false);
  client_->Send(1, "n");
  client_->Flush();
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 1u);
}

// Tests that a ping uses the lifeline. An observer of the connection then sees
// traffic in each direction.
TEST_F(SessionTest, PingAndItsAnswerAlsoPassOverTheLifeline) {
  OpenWithPath();
  (*client_)->SendPing(1);
  client_->Flush();
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 1u);
  EXPECT_EQ(lifeline_->counters(kServer).doorbells, 0u);
  Run();
  EXPECT_EQ(client_->Take(), Lines{"pong 1"});
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 1u);
  EXPECT_EQ(lifeline_->counters(kServer).doorbells, 1u);
}

// Tests that the lifeline is rung once, however many pings a peer sends.
TEST_F(SessionTest, LifelineIsRungOnceForAllThatIsFlushed) {
  OpenWithPath();
  for (int i = 0; i < 50; ++i) (*client_)->SendPing(i);
  client_->Flush();
  Run();
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 1u);
  EXPECT_EQ(lifeline_->counters(kServer).doorbells, 1u);
}

TEST_F(SessionTest, LifelineThatCarriesTheSessionIsNotRung) {
  Open();
  (*client_)->SendPing(1);
  (*client_)->path().RingLifeline();
  Run();
  EXPECT_EQ(client_->Take(), Lines{"pong 1"});
  EXPECT_EQ(lifeline_->counters(kClient).doorbells, 0u);
  EXPECT_EQ(lifeline_->counters(kServer).doorbells, 0u);
}

TEST_F(SessionTest, EventOfThePathMayNotPollIt) {
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, "one");
  client_->Flush();
  client_->Send(1, "two");
  client_->Flush();
  bool polled = false;
  server_->stream(1).on_event = [&] { polled |= (*server_)->Poll(); };
  server_->PollAll();
  EXPECT_FALSE(polled);
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message one", "message two"}));
}

TEST_F(RawPeerTest, ControlFrameOnTheFastPathEndsTheSession) {
  for (FrameType type :
       {FrameType::kHello, FrameType::kPathReady, FrameType::kPathLost}) {
    Link lifeline(LifelineOptions());
    Link fast;
    Peer peer(ServerConfig(), lifeline.Take(Side::kB));
    RawPeer raw(lifeline.Take(Side::kA));
    RawPeer raw_fast(fast.Take(Side::kA));
    peer->Start();
    raw.SendHello();
    lifeline.StepAll();
    peer->path().Add("shm", fast.Take(Side::kB));
    raw_fast.Send(Header(type), "x");
    fast.StepAll();
    EXPECT_EQ(peer.Take(),
              Lines{"closed INVALID_ARGUMENT: a control frame on a fast path"});
  }
}

TEST_F(RawPeerTest, BytesThatAreNoFrameOnTheFastPathEndThePathOnly) {
  Open();
  AddPath();
  raw_fast_->SendBytes("garbage");
  // Sends a frame after the garbage. The path ends with the garbage, so the
  // session must not read the frame.
  raw_fast_->Send(Header(FrameType::kGoaway, 1, 1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{});
  EXPECT_EQ(raw_->Take(),
            Lines{"path lost 1 lost: malformed frame: header cut short"});
  SendPathFrame(FrameType::kPathLost, 1);
  wire::FrameHeader goaway = Header(FrameType::kGoaway, 1, 1);
  goaway.sequence = 1;
  raw_->Send(goaway);
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"path tcp (fake) lost: malformed frame: header cut short; "
                   "the peer says: why",
                   "goaway 1 CANCELLED: the peer gave no reason"}));
}

TEST_F(RawPeerTest, NonsenseOfAnAcknowledgementOnTheFastPathEndsThePathOnly) {
  Open();
  AddPath();
  wire::FrameHeader header = Header(FrameType::kGoaway, 1, 1);
  header.ack = uint64_t{1} << 60;
  raw_fast_->Send(header);
  Run();
  EXPECT_EQ(peer_->Take(), Lines{});
  SendPathFrame(FrameType::kPathLost, 1);
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"path tcp (fake) lost: the peer acknowledges frames that "
                  "were never sent; the peer says: why"});
}

TEST_F(RawPeerTest, FramesComeInOrderWhateverPathTheyTook) {
  Open();
  AddPath();
  for (uint64_t sequence : {3, 2, 3}) {
    wire::FrameHeader ping = Header(FrameType::kGoaway, sequence, 1);
    ping.sequence = sequence;
    raw_fast_->Send(ping);
  }
  Run();
  EXPECT_EQ(peer_->Take(), Lines{});
  for (uint64_t sequence : {1, 2, 1}) {
    wire::FrameHeader ping = Header(FrameType::kGoaway, sequence, 1);
    ping.sequence = sequence;
    raw_->Send(ping);
  }
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"goaway 1 CANCELLED: the peer gave no reason",
                   "goaway 2 CANCELLED: the peer gave no reason",
                   "goaway 3 CANCELLED: the peer gave no reason"}));
}

TEST_F(RawPeerTest, TooMuchAheadOfAMissingFrameEndsTheSession) {
  Open();
  AddPath();
  wire::FrameHeader message = Header(FrameType::kMessage, 1);
  message.sequence = 2;
  for (int i = 0; i < 300; ++i, ++message.sequence) {
    raw_fast_->Send(message, std::string(16000, 'x'));
    Run();
  }
  EXPECT_EQ(peer_->Take(), Lines{"closed RESOURCE_EXHAUSTED: the peer sent too "
                                 "much ahead of a missing frame"});
}

TEST_F(RawPeerTest, AReadThatEndsAfterTheSessionTouchesNoLostPath) {
  Open();
  AddPath();
  raw_->Send(Header(FrameType::kHeaders, 1), "open");
  wire::Announce announce;
  announce.id = 1;
  announce.length = 5000;
  // Announces a region that does not exist, so that the read over the lifeline
  // fails.
  announce.regions = {{0, {{99, 0, 5000}}}};
  raw_->Send(Header(FrameType::kAnnounce, 1),
             wire::EncodeAnnounce(announce, wire::kVersion));
  raw_->SendBytes("no frame");  // ends the session while the read runs
  Run();  // the path goes with Flush(); then the read ends
  EXPECT_TRUE((*peer_)->closed());
}

// Loses the path by a bad packet, while a read over the path is in flight. The
// same bytes are then read over the lifeline, where this region does not exist.
TEST_F(RawPeerTest, AReadOverALostPathIsNotThatOfTheLifeline) {
  Open();
  AddPath();
  const auto exposure =
      raw_fast_->endpoint()->Expose(ToPayload(Letters(5000)), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  const fabric::RemotePart part = exposure->region.front();
  wire::Announce announce;
  announce.id = 1;
  announce.length = 5000;
  announce.regions = {{1, {{part.key, part.offset, part.length}}},
                      {0, {{99, 0, 5000}}}};
  raw_fast_->SendBytes("garbage");
  raw_->Send(Header(FrameType::kHeaders, 1), "open");
  raw_->Send(Header(FrameType::kAnnounce, 1),
             wire::EncodeAnnounce(announce, wire::kVersion));
  lifeline_.StepAll();
  fast_.StepAll();
  Run();
  for (const std::string& line : peer_->stream(1).Take()) {
    EXPECT_NE(line.substr(0, 7), "message") << line;
  }
}

}  // namespace
}  // namespace session
}  // namespace penstock
