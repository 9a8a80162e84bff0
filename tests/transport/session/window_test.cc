// Tests that a slow reader blocks only the sender of its own stream.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/metrics/connection_info.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

// The server's window accepts two messages of 100 bytes. Each costs 164, and
// the second may exceed the window.
class WindowTest : public SessionTest {
 protected:
  WindowTest() { server_config_.stream_window = 300; }

  void OpenStream(uint32_t stream) {
    client_->Open(stream);
    Run();
    server_->stream(stream).Take();
  }
  // Sends two messages that are accepted, and a third that waits.
  void Fill(uint32_t stream) {
    EXPECT_TRUE(client_->Send(stream, Letters(100, 1)));
    EXPECT_TRUE(client_->Send(stream, Letters(100, 2)));
    EXPECT_FALSE(client_->Send(stream, Letters(100, 3)));
  }
  void Consume(uint32_t stream) {
    (*server_)->input().Consumed(stream);
    Run();
  }
};

TEST_F(WindowTest, SlowReaderHoldsBackItsOwnStreamOnly) {
  Open();
  OpenStream(1);
  OpenStream(2);
  Fill(1);
  Run();
  EXPECT_EQ(server_->stream(1).Take(), (Lines{MessageLine(Letters(100, 1)),
                                              MessageLine(Letters(100, 2))}));
  metrics::ConnectionInfo info;
  EXPECT_TRUE((*client_)->Describe(&info));
  EXPECT_EQ(info.window_stalls, 1u);
  EXPECT_TRUE(client_->Send(2, "goes on"));
  Run();
  EXPECT_EQ(server_->stream(2).Take(), Lines{"message goes on"});
  EXPECT_EQ(client_->stream(1).Take(), Lines{});
}

TEST_F(WindowTest, CreditLetsTheNextMessageGo) {
  Open();
  OpenStream(1);
  Fill(1);
  Run();
  server_->stream(1).Take();
  Consume(1);
  EXPECT_EQ(client_->stream(1).Take(), Lines{"accepted"});
  EXPECT_EQ(server_->stream(1).Take(), Lines{MessageLine(Letters(100, 3))});
  EXPECT_FALSE(client_->Send(1, "the next waits again"));
}

TEST_F(WindowTest, WhatWouldWaitIsNotTakenAsEager) {
  Open();
  OpenStream(1);
  EXPECT_TRUE(client_->Send(1, Letters(100, 1)));
  EXPECT_TRUE(client_->Send(1, Letters(100, 2)));
  EXPECT_FALSE((*client_)->output().SendEager(1, "no room", false));
  EXPECT_FALSE(client_->Send(1, "waits"));
  (*server_)->input().Consumed(1);
  EXPECT_FALSE((*client_)->output().SendEager(1, "not before that", false));
  Run();
  Consume(1);
  EXPECT_TRUE((*client_)->output().SendEager(1, "now", false));
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(100, 1)), MessageLine(Letters(100, 2)),
                   "message waits", "message now"}));
}

TEST_F(WindowTest, LastMessageThatWaitedIsStillTheLast) {
  Open();
  OpenStream(1);
  Fill(1);
  EXPECT_FALSE((*client_)->output().SendMessage(1, ToPayload("end"),
                                                /*compressed=*/false,
                                                /*last=*/true));
  Run();
  server_->stream(1).Take();
  Consume(1);
  Consume(1);
  Consume(1);
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(100, 3)), "message end", "half close"}));
}

TEST_F(WindowTest, CreditComesInQuartersOfTheWindow) {
  Open();
  OpenStream(1);
  client_->Send(1, "");
  client_->Send(1, Letters(10));
  Run();
  const uint64_t before = lifeline_->counters(kServer).packets;
  Consume(1);  // 64 of 300
  EXPECT_EQ(lifeline_->counters(kServer).packets, before);
  Consume(1);  // 138 of 300
  EXPECT_EQ(lifeline_->counters(kServer).packets, before + 1);
}

TEST_F(WindowTest, EmptyMessagesAreBoundedToo) {
  Open();
  OpenStream(1);
  int taken = 0;
  while (client_->Send(1, "")) ++taken;
  EXPECT_EQ(taken, 5);
}

TEST_F(WindowTest, MessageLargerThanTheWindowPasses) {
  Open();
  OpenStream(1);
  EXPECT_TRUE(client_->Send(1, Letters(60000)));
  EXPECT_FALSE(client_->Send(1, "next"));
  Run();
  EXPECT_EQ(server_->stream(1).Take(), Lines{MessageLine(Letters(60000))});
  Consume(1);
  EXPECT_EQ(server_->stream(1).Take(), Lines{"message next"});
}

TEST_F(WindowTest, HalfCloseWaitsBehindAMessageThatWaits) {
  Open();
  OpenStream(1);
  Fill(1);
  (*client_)->output().SendHalfClose(1);
  Run();
  EXPECT_EQ(server_->stream(1).Take().size(), 2u);
  Consume(1);
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(100, 3)), "half close"}));
}

TEST_F(WindowTest, TrailersWaitBehindAMessageThatWaits) {
  client_config_.stream_window = 300;
  Open();
  OpenStream(1);
  server_->Send(1, Letters(300));
  EXPECT_FALSE(server_->Send(1, "last"));
  (*server_)->output().SendTrailers(1, "done");
  Run();
  EXPECT_EQ(client_->stream(1).Take(), Lines{MessageLine(Letters(300))});
  (*client_)->input().Consumed(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            (Lines{"message last", "trailers done"}));
  EXPECT_EQ(server_->stream(1).Take(), Lines{"accepted"});
}

TEST_F(WindowTest, DetachedStreamStillSendsWhatWaits) {
  client_config_.stream_window = 300;
  Open();
  OpenStream(1);
  server_->Send(1, Letters(300));
  server_->Send(1, Letters(2000));
  (*server_)->output().SendTrailers(1, "done");
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(), Lines{MessageLine(Letters(300))});
  EXPECT_FALSE((*server_)->drained());
  (*client_)->input().Consumed(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            (Lines{MessageLine(Letters(2000)), "trailers done"}));
  EXPECT_EQ(server_->stream(1).Take(), Lines{});
  EXPECT_TRUE((*server_)->drained());
}

TEST_F(WindowTest, ResetByTheReaderEndsWhatADetachedStreamSends) {
  client_config_.stream_window = 300;
  Open();
  OpenStream(1);
  server_->Send(1, Letters(300));
  server_->Send(1, Letters(2000));
  (*server_)->output().SendTrailers(1, "done");
  (*server_)->streams().Detach(1);
  Run();
  (*client_)->output().SendReset(1, absl::CancelledError("enough"));
  (*client_)->streams().Detach(1);
  Run();
  EXPECT_TRUE((*server_)->drained());
  EXPECT_EQ(lifeline_->exposed(kServer), 0u);
}

TEST_F(WindowTest, ResetByTheReaderDropsWhatWaits) {
  Open();
  OpenStream(1);
  Fill(1);
  Run();
  (*server_)->output().SendReset(1, absl::CancelledError("enough"));
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset CANCELLED: enough, by the peer"});
  EXPECT_TRUE((*client_)->drained());
}

TEST_F(WindowTest, ResetDoesNotWait) {
  Open();
  OpenStream(1);
  Fill(1);
  (*client_)->output().SendReset(1, absl::CancelledError("enough"));
  (*client_)->streams().Detach(1);
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(100, 1)), MessageLine(Letters(100, 2)),
                   "reset CANCELLED: enough, by the peer"}));
  EXPECT_TRUE((*client_)->drained());  // the waiting message is dropped
}

TEST_F(WindowTest, DropUnsentDropsWhatWaitsAndNothingElse) {
  Open();
  OpenStream(1);
  Fill(1);
  (*client_)->output().SendHalfClose(1);
  (*client_)->output().DropUnsent(1);
  (*client_)->output().SendTrailers(1, "cut short");
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(100, 1)), MessageLine(Letters(100, 2)),
                   "trailers cut short"}));
  Consume(1);
  // Expects that no message waits for acceptance.
  EXPECT_EQ(client_->stream(1).Take(), Lines{});
}

TEST_F(WindowTest, PayloadIsLetGoWithTheStreamThatDropsIt) {
  Open();
  OpenStream(1);
  Fill(1);
  memory::Payload payload = ToPayload(Letters(100));
  const std::weak_ptr<const void> alive = payload.pieces()[0].owner;
  (*client_)->output().SendMessage(1, std::move(payload), false);
  EXPECT_FALSE(alive.expired());
  (*client_)->output().DropUnsent(1);
  EXPECT_TRUE(alive.expired());
}

TEST_F(WindowTest, AcceptedEventMaySendTheNext) {
  Open();
  OpenStream(1);
  Fill(1);
  int sent = 3;
  client_->stream(1).on_event = [&] {
    if (++sent <= 6) client_->Send(1, Letters(100, sent));
  };
  for (int i = 0; i < 6; ++i) {
    Run();
    Consume(1);
  }
  const Lines lines = server_->stream(1).Take();
  ASSERT_EQ(lines.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(lines[i], MessageLine(Letters(100, i + 1)));
  }
}

TEST_F(WindowTest, PeerThatLeavesMuchUnreadGetsAnnouncementsOnly) {
  client_config_.max_eager_unread = 200;
  Open();
  OpenStream(1);
  OpenStream(2);
  client_->Send(1, Letters(100, 1));
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
  client_->Send(1, Letters(100, 2));  // 164 are unread
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
  client_->Send(2, "");
  client_->Send(2, "small");
  EXPECT_EQ(lifeline_->exposed(kClient), 1u);
  Run();
  EXPECT_EQ(server_->stream(2).Take(), (Lines{"message ", "message small"}));
  Consume(1);
  Consume(1);
  Consume(2);
  Consume(2);
  client_->Send(2, "eager again");
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(RawPeerTest, PeerThatOverrunsTheWindowEndsTheSession) {
  Config config = ServerConfig();
  config.stream_window = 300;
  Open(config);
  raw_->Send(Header(FrameType::kHeaders, 1));
  for (int i = 0; i < 5; ++i) raw_->Send(Header(FrameType::kMessage, 1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"opened 1"});
  raw_->Send(Header(FrameType::kMessage, 1));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed INVALID_ARGUMENT: the peer overran a "
                                 "stream's window"});
}

// Sends a message that is 2^40 bytes long. The credit for this message would
// take 257 frames.
TEST_F(RawPeerTest, WhatIsRefusedGetsNoCredit) {
  Config config = ServerConfig();
  config.max_receive_bytes = 5000;
  Open(config);
  raw_->Send(Header(FrameType::kHeaders, 1));
  wire::Announce announce;
  announce.id = 1;
  announce.length = uint64_t{1} << 40;
  announce.regions = {{0, {{1, 0, announce.length}}}};
  raw_->Send(Header(FrameType::kAnnounce, 1),
             wire::EncodeAnnounce(announce, wire::kVersion));
  Run();
  EXPECT_EQ(peer_->stream(1).Take(),
            (Lines{"headers ", "too large 1099511627776"}));
  (*peer_)->input().Consumed(1);
  Run();
  EXPECT_EQ(raw_->Take(), Lines{"release 1"});
}

TEST_F(RawPeerTest, NothingIsReadIfNothingMayBeReceived) {
  Config config = ServerConfig();
  config.max_receive_bytes = 0;
  Open(config);
  raw_->Send(Header(FrameType::kHeaders, 1));
  wire::Announce announce;
  announce.id = 1;
  announce.length = 1;
  announce.regions = {{0, {{1, 0, announce.length}}}};
  raw_->Send(Header(FrameType::kAnnounce, 1),
             wire::EncodeAnnounce(announce, wire::kVersion));
  Run();
  EXPECT_EQ(peer_->stream(1).Take(), (Lines{"headers ", "too large 1"}));
}

TEST_F(RawPeerTest, CreditForMoreThanWasSentGainsNothing) {
  Begin();
  raw_->SendHello(/*stream_window=*/200);
  raw_->Send(Header(FrameType::kHeaders, 1));
  raw_->Send(Header(FrameType::kCredit, 1, 1000000));
  Run();
  EXPECT_TRUE(peer_->Send(1, Letters(200)));
  EXPECT_FALSE(peer_->Send(1, "waits"));
  raw_->Send(Header(FrameType::kCredit, 1, 64));  // the window is still full
  Run();
  EXPECT_EQ(peer_->stream(1).Take(), Lines{"headers "});
  raw_->Send(Header(FrameType::kCredit, 1, 1));
  Run();
  EXPECT_EQ(peer_->stream(1).Take(), Lines{"accepted"});
}

}  // namespace
}  // namespace session
}  // namespace penstock
