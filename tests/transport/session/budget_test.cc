// Tests the memory that a peer makes a session hold. A session that would hold
// too much must end.

#include "transport/session/budget.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/metrics/connection_info.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

TEST(Budget, OnlyWhatALiarDoesIsAnError) {
  BudgetLimits limits;
  limits.replies_bytes = limits.answers_bytes = limits.outbox_bytes = 10;
  limits.announcements = 2;
  limits.unread_bytes = limits.unsent_answers_bytes = 20;
  Budget budget(limits);
  budget.Charge(Budget::Kind::kReplies, 100);
  EXPECT_FALSE(budget.accepts_streams());
  budget.Charge(Budget::Kind::kOutbox, 11);
  EXPECT_FALSE(budget.sends());
  budget.Charge(Budget::Kind::kAnswers, 11);
  EXPECT_FALSE(budget.reads());
  EXPECT_TRUE(budget.Check().ok());
  budget.Charge(Budget::Kind::kAnswers, 10);
  EXPECT_TRUE(absl::IsResourceExhausted(budget.Check()));
  budget.Return(Budget::Kind::kAnswers, 21);
  EXPECT_TRUE(budget.reads());
  EXPECT_TRUE(budget.Check().ok());
  budget.Charge(Budget::Kind::kUnread, 21);
  EXPECT_TRUE(absl::IsResourceExhausted(budget.Check()));
}

// Tests of a server's session with small limits.
class BudgetTest : public RawPeerTest {
 protected:
  BudgetTest() {
    config_.budget.replies_bytes = 10000;
    config_.budget.answers_bytes = 1000;
    config_.budget.outbox_bytes = 10000;
    config_.budget.announcements = 4;
    config_.budget.unread_bytes = 10000;
    config_.budget.unsent_answers_bytes = 3000;
    config_.max_eager_unread = 1 << 20;
  }
  void OpenStream(uint32_t stream) {
    raw_->Send(Header(FrameType::kHeaders, stream), "open");
    Run();
  }
  // Answers with a message of `bytes` bytes from the server, and detaches the
  // stream.
  void Answer(uint32_t stream, size_t bytes) {
    peer_->Send(stream, Letters(bytes));
    (*peer_)->output().SendTrailers(stream, "done");
    (*peer_)->streams().Detach(stream);
    Run();
  }
  void Announce(uint64_t id, uint32_t stream) {
    wire::Announce announce;
    announce.id = id;
    announce.length = 5000;
    announce.regions.push_back(Announced(
        0, raw_->endpoint()->Expose(ToPayload(Letters(5000)), 1)->region));
    raw_->Send(Header(FrameType::kAnnounce, stream),
               wire::EncodeAnnounce(announce, wire::kVersion));
  }
  // Opens a session with a read budget of one byte, and announces a message
  // that nobody consumes. The message uses up the whole budget. Therefore the
  // session defers the reads of all messages that are announced later.
  void DeferAllButTheFirst() {
    config_.read_budget = 1;
    Open(config_);
    OpenStream(1);
    Announce(1, 1);
    Run();
  }
  // Fills the fake lifeline with bytes of the session. The peer does not read
  // them, so the session must keep further output.
  void LetRawPeerReadNothing() {
    while (lifeline_.waiting(Side::kB) > 0) {
      lifeline_.Step(Side::kB);
      peer_->Flush();
    }
  }

  Config config_ = ServerConfig();
};

TEST_F(BudgetTest, RepliesThatNobodyReleasesHoldUpNewStreams) {
  Open(config_);
  for (uint32_t stream : {1, 2, 3}) {
    OpenStream(stream);
    EXPECT_TRUE((*peer_)->accepts_streams());
    Answer(stream, 4000);
  }
  EXPECT_FALSE((*peer_)->accepts_streams());
  raw_->Send(Header(FrameType::kRelease), IdPayload(1));
  Run();
  EXPECT_TRUE((*peer_)->accepts_streams());
  EXPECT_FALSE((*peer_)->closed());
}

TEST_F(BudgetTest, RepliesThatAreReleasedInTimeHoldUpNothing) {
  Open(config_);
  for (uint32_t stream = 1; stream < 100; ++stream) {
    OpenStream(stream);
    peer_->Send(stream, Letters(9000));
    raw_->Send(Header(FrameType::kRelease), IdPayload(stream));
    raw_->Send(Header(FrameType::kCredit, stream, 10000));
    Run();
    Answer(stream, 10);
    EXPECT_TRUE((*peer_)->accepts_streams());
  }
}

TEST_F(BudgetTest, CreditForWhatIsStillExposedBuysNothing) {
  Open(config_);
  OpenStream(1);
  // Sends a message that fills the whole window.
  EXPECT_TRUE(peer_->Send(1, Letters(4096)));
  raw_->Send(Header(FrameType::kCredit, 1, 1 << 20));
  Run();
  EXPECT_FALSE(peer_->Send(1, Letters(4096)));
  peer_->stream(1).Take();
  raw_->Send(Header(FrameType::kRelease), IdPayload(1));
  Run();
  EXPECT_EQ(peer_->stream(1).Take(), Lines{"accepted"});
}

TEST_F(BudgetTest, SendersWaitForAPeerThatDoesNotRead) {
  Open(config_);
  OpenStream(1);
  int sent = 0;
  // Sends while the peer gives credit for each message, and reads none of them.
  while (sent < 1000 && peer_->Send(1, Letters(900))) {
    peer_->Flush();
    raw_->Send(Header(FrameType::kCredit, 1, 1 << 20));
    LetRawPeerReadNothing();
    ++sent;
  }
  EXPECT_LT(sent, 100);
  Run();  // the peer reads
  EXPECT_EQ(peer_->stream(1).Take().back(), "accepted");
  EXPECT_TRUE(peer_->Send(1, "more"));
}

TEST_F(BudgetTest, SendersGoOnInTheFlushThatMakesRoomForThem) {
  config_.budget.outbox_bytes = 500;  // less than the stream's window
  Open(config_);
  OpenStream(1);
  EXPECT_TRUE(peer_->Send(1, Letters(900)));
  EXPECT_FALSE(peer_->Send(1, Letters(900)));
  // Expects that one flush suffices. The lifeline has accepted everything, so
  // no event would cause another flush.
  peer_->Flush();
  EXPECT_EQ(peer_->stream(1).Take().back(), "accepted");
}

TEST_F(BudgetTest, SendersMayWaitMoreThanOnce) {
  config_.budget.outbox_bytes = 500;
  Open(config_);
  OpenStream(1);
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(peer_->Send(1, Letters(900)));
    EXPECT_FALSE(peer_->Send(1, Letters(900)));
    peer_->Flush();
    EXPECT_EQ(peer_->stream(1).Take().back(), "accepted");
    raw_->Send(Header(FrameType::kCredit, 1, 1 << 20));
    Run();
  }
  metrics::ConnectionInfo info;
  EXPECT_TRUE((*peer_)->Describe(&info));
  EXPECT_EQ(info.window_stalls, 0u);
}

TEST_F(BudgetTest, NoMoreIsReadFromAPeerThatDoesNotReadTheAnswers) {
  Open(config_);
  EXPECT_TRUE((*peer_)->reads());
  for (int i = 0; i < 200 && (*peer_)->reads(); ++i) {
    raw_->Send(Header(FrameType::kPing), IdPayload(i));
    LetRawPeerReadNothing();
  }
  EXPECT_FALSE((*peer_)->reads());
  EXPECT_FALSE((*peer_)->closed());
  Run();
  EXPECT_TRUE((*peer_)->reads());
}

TEST_F(BudgetTest, AnswersThatNobodyReadsEndTheSessionInTheEnd) {
  Open(config_);
  for (int i = 0; i < 200 && !(*peer_)->closed(); ++i) {
    raw_->Send(Header(FrameType::kPing), IdPayload(i));
    LetRawPeerReadNothing();
  }
  EXPECT_TRUE((*peer_)->closed());
}

TEST_F(BudgetTest, MoreAnnouncementsThanBothSidesAgreedOnEndTheSession) {
  DeferAllButTheFirst();
  for (uint32_t stream : {2, 3, 4}) {
    OpenStream(stream);
    Announce(stream, stream);
  }
  Announce(5, 4);
  LetRawPeerReadNothing();
  EXPECT_FALSE((*peer_)->closed());
  Announce(6, 4);
  LetRawPeerReadNothing();
  EXPECT_TRUE((*peer_)->closed());
}

TEST_F(BudgetTest, SendersKeepToTheNumberOfAnnouncements) {
  Open(config_);
  for (uint32_t stream : {1, 2, 3, 4, 5}) OpenStream(stream);
  for (uint32_t stream : {1, 2, 3, 4}) {
    EXPECT_TRUE(peer_->Send(stream, Letters(1500)));
  }
  EXPECT_FALSE(peer_->Send(5, Letters(1500)));
  Run();
  raw_->Send(Header(FrameType::kRelease), IdPayload(2));
  Run();
  EXPECT_EQ(peer_->stream(5).Take().back(), "accepted");
}

TEST_F(BudgetTest, UnreadMessagesOfAllStreamsTogetherAreBounded) {
  Open(config_);
  for (uint32_t stream = 1; stream < 100 && !(*peer_)->closed(); ++stream) {
    OpenStream(stream);
    raw_->Send(Header(FrameType::kMessage, stream), Letters(900));
    Run();
  }
  EXPECT_TRUE((*peer_)->closed());
}

TEST_F(BudgetTest, PiecesOfMetadataThatWaitAreBounded) {
  DeferAllButTheFirst();
  OpenStream(2);
  Announce(2, 2);  // the message is never read
  for (int i = 0; i < 8; ++i) {
    raw_->Send(Header(FrameType::kHeaders, 2), "piece");
    Run();
    EXPECT_FALSE((*peer_)->closed()) << i;
  }
  raw_->Send(Header(FrameType::kHeaders, 2), "piece");
  Run();
  EXPECT_TRUE((*peer_)->closed());
}

TEST_F(BudgetTest, MetadataBehindAMessageThatNeverComesIsBounded) {
  DeferAllButTheFirst();
  for (uint32_t stream : {2, 3, 4}) {
    OpenStream(stream);
    Announce(stream, stream);
  }
  for (uint32_t i = 0; i < 20 && !(*peer_)->closed(); ++i) {
    raw_->Send(Header(FrameType::kTrailers, 2 + i % 3), Letters(1000));
    LetRawPeerReadNothing();
  }
  EXPECT_TRUE((*peer_)->closed());
}

TEST_F(BudgetTest, OfMetadataThatIsTooMuchNoMoreIsKeptThanShowsIt) {
  config_.max_metadata_bytes = 100;
  Open(config_);
  peer_->attaches = false;
  raw_->Send(Header(FrameType::kHeaders, 1), Letters(5000));
  Run();
  peer_->Attach(1);
  EXPECT_EQ(
      peer_->stream(1).Take(),
      Lines{absl::StrCat("headers ", Brief(Letters(5000).substr(0, 101)))});
}

TEST_F(BudgetTest, WhatIsTakenIsNotCharged) {
  Open(config_);
  for (uint32_t stream = 1; stream < 200; ++stream) {
    OpenStream(stream);
    raw_->Send(Header(FrameType::kMessage, stream), Letters(900));
    Run();
    (*peer_)->input().Consumed(stream);
    if (stream % 2 == 0) (*peer_)->streams().Detach(stream);
  }
  EXPECT_FALSE((*peer_)->closed());
}

}  // namespace
}  // namespace session
}  // namespace penstock
