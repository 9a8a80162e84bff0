// Tests which frames are kept until their acknowledgement, and when
// acknowledgements are sent.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

// Returns a frame of almost 16 KiB, of a type without a window. Four such
// frames fill a message, and a sender may keep 64 of them.
const std::string& Large() {
  static const std::string* const large = new std::string(Letters(16352));
  return *large;
}
constexpr uint64_t kLoggedFrames = 64;

class AcknowledgeTest : public RawPeerTest {
 protected:
  void OpenWithPath() {
    Open();
    AddPath();
  }
  // Opens stream 1, and lets the session queue `n` large frames on it.
  void QueueLarge(uint64_t n) {
    raw_->Send(Header(FrameType::kHeaders, 1));
    Run();
    for (uint64_t i = 0; i < n; ++i) (*peer_)->output().SendHeaders(1, Large());
  }
  void SendLarge(RawPeer* from, int n) {
    for (int i = 0; i < n; ++i) {
      wire::FrameHeader header = Header(FrameType::kHeaders);
      header.sequence = raw_->next_sequence++;
      from->Send(header, Large());
    }
  }
  void Acknowledge(uint64_t sequence) {
    wire::FrameHeader header = Header(FrameType::kAck);
    header.ack = sequence;
    raw_->Send(header);
    Run();
  }
};

TEST_F(AcknowledgeTest, LifelineAloneNeedsNone) {
  Open();
  SendLarge(raw_.get(), 20);
  Run();
  EXPECT_EQ(raw_->Take(), Lines{});
}

TEST_F(AcknowledgeTest, FastPathGetsOneEvery64KiB) {
  OpenWithPath();
  SendLarge(raw_fast_.get(), 3);
  Run();
  EXPECT_EQ(raw_fast_->Take(), Lines{});
  SendLarge(raw_fast_.get(), 6);
  Run();
  EXPECT_EQ(raw_fast_->Take(), (Lines{"ack 4", "ack 8"}));
  EXPECT_EQ(raw_->Take(), Lines{});
}

TEST_F(AcknowledgeTest, FrameThatLeavesSavesOne) {
  OpenWithPath();
  SendLarge(raw_fast_.get(), 3);
  Run();
  (*peer_)->SendPing(1);
  Run();
  SendLarge(raw_fast_.get(), 3);
  Run();
  EXPECT_EQ(raw_fast_->Take(), Lines{"ping 1"});
}

TEST_F(AcknowledgeTest, SenderKeepsABoundedAmount) {
  OpenWithPath();
  QueueLarge(2 * kLoggedFrames);
  Run();
  const uint64_t first = raw_fast_->received();
  EXPECT_GE(first, kLoggedFrames);
  EXPECT_LE(first, kLoggedFrames + 4);
  Acknowledge(3);  // less than the whole message
  EXPECT_EQ(raw_fast_->received(), first);
  Acknowledge(4);
  EXPECT_EQ(raw_fast_->received(), first + 4);
  Acknowledge(first + 4);
  EXPECT_EQ(raw_fast_->received(), 2 * kLoggedFrames);
}

TEST_F(AcknowledgeTest, LostPathSendsAgainWhatWasNotAcknowledged) {
  OpenWithPath();
  for (uint64_t cookie = 1; cookie <= 6; ++cookie) {
    (*peer_)->SendPing(cookie);
    peer_->Flush();
  }
  Run();
  raw_fast_->Take();
  Acknowledge(4);
  SendPathFrame(FrameType::kPathLost, 1);
  (*peer_)->SendPing(7);
  Run();
  Lines lines = raw_->Take();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].find("path lost 1"), 0u);
  lines.erase(lines.begin());
  EXPECT_EQ(lines, (Lines{"ping 5", "ping 6", "ping 7"}));
}

TEST_F(AcknowledgeTest, SenderThatWaitsGoesOnWhenThePathIsLost) {
  OpenWithPath();
  QueueLarge(2 * kLoggedFrames);
  Run();
  SendPathFrame(FrameType::kPathLost, 1);
  Run();
  EXPECT_EQ(raw_->received(), 2 * kLoggedFrames);
  EXPECT_EQ(raw_->Take().size(), 1 + 2 * kLoggedFrames);  // "path lost"
}

// Tests two sides that both have more to send than may stay unacknowledged. The
// packets that would carry the acknowledgements wait, too.
TEST_F(SessionTest, SidesThatBothWaitStillAcknowledge) {
  OpenWithPath();
  client_->Open(1);
  Run();
  server_->stream(1).Take();
  for (uint64_t i = 0; i < 2 * kLoggedFrames; ++i) {
    (*client_)->output().SendHeaders(1, Large());
    (*server_)->output().SendHeaders(1, Large());
  }
  client_->stream(1).on_event = [this] { (*client_)->SendPing(1); };
  server_->stream(1).on_event = [this] { (*server_)->SendPing(1); };
  Run();
  EXPECT_EQ(client_->stream(1).Take().size(), 2 * kLoggedFrames);
  EXPECT_EQ(server_->stream(1).Take().size(), 2 * kLoggedFrames);
}

class FewCreditsTest : public SessionTest {
 protected:
  FewCreditsTest() { fast_options_.credits = 2; }
};

// Tests a server that has used up its credit when its acknowledgements are due.
// The server's earlier packets acknowledge none of the later frames.
TEST_F(FewCreditsTest, AcknowledgementWaitsForCredit) {
  OpenWithPath();
  for (uint64_t cookie : {1, 2}) {
    (*server_)->SendPing(cookie);
    server_->Flush();
  }
  client_->Attach(1);
  for (uint64_t i = 0; i < 2 * kLoggedFrames; ++i) {
    (*client_)->output().SendHeaders(1, Large());
  }
  client_->Flush();
  // Delivers only the client's packets, which give the client credit. The
  // server's packets wait.
  while (fast().Step(kServer)) {
    server_->Flush();
    client_->Flush();
  }
  Run();
  EXPECT_EQ(server_->stream(1).Take().size(), 2 * kLoggedFrames);
}

// Tests a frame that arrives early. The frame must be acknowledged once the
// missing frame has arrived, even if no other frame follows. Otherwise the
// sender may wait forever.
TEST_F(SessionTest, FramesThatWereHeldAreAcknowledged) {
  Open();
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  StepAll(lifeline_.get(), kServer);
  client_->Open(1);
  client_->Flush();  // still over the lifeline
  StepAll(lifeline_.get(), kClient);
  for (uint64_t i = 0; i < 2 * kLoggedFrames; ++i) {
    (*client_)->output().SendHeaders(1, Large());
  }
  client_->Flush();
  StepAll(&fast(), kServer);
  EXPECT_EQ(server_->stream(1).Take(), Lines{});
  Run();
  EXPECT_EQ(server_->stream(1).Take().size(), 1 + 2 * kLoggedFrames);
}

}  // namespace
}  // namespace session
}  // namespace penstock
