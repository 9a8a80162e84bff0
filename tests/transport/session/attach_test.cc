// Tests streams that the peer has opened and that no application has attached.

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"

namespace penstock {
namespace session {
namespace {

class AttachTest : public SessionTest {
 protected:
  // Opens stream 1 at the client. The server reports the stream, but nobody
  // attaches the stream there.
  void OpenStream() {
    Open();
    server_->attaches = false;
    client_->Open(1);
    Run();
    EXPECT_EQ(server_->Take(), Lines{"opened 1"});
  }
};

TEST_F(AttachTest, WhatCameWaitsInOrder) {
  OpenStream();
  client_->Send(1, "one");
  client_->Send(1, Letters(5000));
  (*client_)->output().SendHalfClose(1);
  Run();
  EXPECT_TRUE((*server_)->streams().IsUnattached(1));
  EXPECT_FALSE((*server_)->streams().IsUnattached(2));
  server_->Attach(1);
  EXPECT_FALSE((*server_)->streams().IsUnattached(1));
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message one", MessageLine(Letters(5000)),
                   "half close"}));
}

TEST_F(AttachTest, WhatComesLaterIsDelivered) {
  OpenStream();
  server_->Attach(1);
  client_->Send(1, "one");
  Run();
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open", "message one"}));
}

TEST_F(AttachTest, ResetWaitsAndComesLast) {
  OpenStream();
  client_->Send(1, "one");
  (*client_)->output().SendReset(1, absl::CancelledError("bye"));
  Run();
  EXPECT_TRUE((*server_)->streams().IsUnattached(1));
  server_->Attach(1);
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", "message one",
                   "reset CANCELLED: bye, by the peer"}));
  EXPECT_FALSE((*server_)->streams().IsUnattached(1));
  EXPECT_TRUE((*server_)->drained());
}

TEST_F(AttachTest, EventMayDetachWhileItAttaches) {
  OpenStream();
  client_->Send(1, "one");
  (*client_)->output().SendReset(1, absl::CancelledError("bye"));
  Run();
  server_->stream(1).on_event = [this] { (*server_)->streams().Detach(1); };
  server_->Attach(1);
  EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
}

TEST_F(AttachTest, StreamCanBeRefused) {
  OpenStream();
  client_->Send(1, Letters(5000));
  Run();
  (*server_)->output().SendReset(1, absl::UnavailableError("no room"));
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset UNAVAILABLE: no room, by the peer"});
  EXPECT_FALSE((*server_)->streams().IsUnattached(1));
  EXPECT_TRUE((*server_)->drained());
}

TEST_F(AttachTest, StreamThatFailedMeanwhileIsResetWhenItIsAttached) {
  OpenStream();
  client_->Send(1, Letters(5000));
  lifeline_->FailNthRead(kServer, 1);
  Run();
  EXPECT_EQ(client_->stream(1).Take().size(), 1u);
  server_->Attach(1);
  const Lines lines = server_->stream(1).Take();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().find(
                "reset UNAVAILABLE: a message was lost: a fake read failed"),
            0u);
}

TEST_F(AttachTest, ClosedSessionForgetsThem) {
  OpenStream();
  (*server_)->Close(absl::UnavailableError("enough"));
  EXPECT_FALSE((*server_)->streams().IsUnattached(1));
  server_->Attach(1);
  EXPECT_EQ(server_->stream(1).Take(),
            Lines{"reset UNAVAILABLE: Penstock session closed"});
}

class TooLargeTest : public SessionTest {
 protected:
  TooLargeTest() { server_config_.max_receive_bytes = 5000; }
};

TEST_F(TooLargeTest, RefusedBeforeMemoryIsTaken) {
  Open();
  client_->Open(1);
  client_->Send(1, Letters(5000));
  client_->Send(1, Letters(5001));
  Run();
  EXPECT_EQ(
      server_->stream(1).Take(),
      (Lines{"headers open", MessageLine(Letters(5000)), "too large 5001"}));
  EXPECT_EQ(lifeline_->counters(kServer).read_bytes, 5000u);
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(TooLargeTest, RefusalWaitsForMessagesBefore) {
  Open();
  client_->Open(1);
  Run();
  server_->stream(1).Take();
  client_->Send(1, Letters(4000));
  client_->Send(1, Letters(6000));
  client_->Flush();
  EXPECT_TRUE(Step(lifeline_.get(), kServer));
  EXPECT_EQ(server_->stream(1).Take(), Lines{});
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{MessageLine(Letters(4000)), "too large 6000"}));
}

TEST_F(TooLargeTest, LoanOfARefusedMessageComesBack) {
  fast_options_.can_load = true;
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, Letters(6000));
  Run();
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open",
                                              "too large "
                                              "6000"}));
  EXPECT_EQ(fast().counters(kServer).given_back, 1u);
  EXPECT_EQ(fast().exposed(kClient), 0u);
}

}  // namespace
}  // namespace session
}  // namespace penstock
