// Tests the number of streams that are open at once.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

class MaxStreamsTest : public SessionTest {
 protected:
  MaxStreamsTest() { server_config_.max_streams = 1; }

  // Answers at the server, and detaches the stream.
  void Answer(uint32_t stream) {
    (*server_)->output().SendTrailers(stream, "done");
    (*server_)->streams().Detach(stream);
    Run();
  }
  void EndAtClient(uint32_t stream) {
    (*client_)->streams().Detach(stream);
    Run();
  }
};

TEST_F(MaxStreamsTest, StreamAboveTheLimitWaitsWithAllThatIsSentOnIt) {
  Open();
  client_->Open(1);
  client_->Open(2);
  EXPECT_FALSE(client_->Send(2, "question"));
  (*client_)->output().SendHalfClose(2);
  Run();
  EXPECT_EQ(server_->Take(), Lines{"opened 1"});
  Answer(1);
  EndAtClient(1);
  EXPECT_EQ(server_->Take(), Lines{"opened 2"});
  EXPECT_EQ(server_->stream(2).Take(),
            (Lines{"headers open", "message question", "half close"}));
  EXPECT_EQ(client_->stream(2).Take(), Lines{"accepted"});
}

TEST_F(MaxStreamsTest, StreamsThatWaitOpenInTheirOrder) {
  Open();
  for (uint32_t stream : {1, 2, 3}) client_->Open(stream);
  for (uint32_t stream : {1, 2, 3}) {
    Run();
    EXPECT_EQ(server_->Take(), Lines{absl::StrCat("opened ", stream)});
    Answer(stream);
    EndAtClient(stream);
  }
}

TEST_F(MaxStreamsTest, StreamThatIsCancelledWhileItWaitsIsNeverSeen) {
  Open();
  for (uint32_t stream : {1, 2, 3}) client_->Open(stream);
  (*client_)->output().SendReset(2, absl::CancelledError("x"));
  (*client_)->streams().Detach(2);
  Run();
  Answer(1);
  EndAtClient(1);
  EXPECT_EQ(server_->Take(), (Lines{"opened 1", "opened 3"}));
}

// Tests a stream that is detached while it waits for another stream to end. A
// GOAWAY may cause this, if it says that the server will never see the stream.
TEST_F(MaxStreamsTest, StreamThatIsDetachedWhileItWaitsIsNeverSeen) {
  Open();
  for (uint32_t stream : {1, 2, 3}) client_->Open(stream);
  (*client_)->streams().Detach(2);
  Run();
  Answer(1);
  EndAtClient(1);
  EXPECT_EQ(server_->Take(), (Lines{"opened 1", "opened 3"}));
  Answer(3);
  EndAtClient(3);
  EXPECT_TRUE((*client_)->drained());
}

TEST_F(MaxStreamsTest, ResetMakesRoom) {
  Open();
  client_->Open(1);
  client_->Open(2);
  (*client_)->output().SendReset(1, absl::CancelledError("x"));
  (*client_)->streams().Detach(1);
  Run();
  EXPECT_EQ(server_->Take(), (Lines{"opened 1", "opened 2"}));
  EXPECT_EQ(client_->stream(2).Take(), Lines{});
}

// Makes the server read a reset and the opening of the next stream together,
// before it has attached the first stream.
TEST_F(MaxStreamsTest, ResetOfAStreamThatWaitsToBeAttachedMakesRoom) {
  Open();
  server_->attaches = false;
  client_->Open(1);
  client_->Open(2);
  (*client_)->output().SendReset(1, absl::CancelledError("x"));
  (*client_)->streams().Detach(1);
  Run();
  EXPECT_EQ(server_->Take(), (Lines{"opened 1", "opened 2"}));
  EXPECT_EQ(client_->stream(2).Take(), Lines{});
}

TEST_F(MaxStreamsTest, StreamThatDrainsIsStillOpen) {
  client_config_.stream_window = 100;
  Open();
  client_->Open(1);
  client_->Open(2);
  Run();
  server_->Send(1, Letters(100));
  server_->Send(1, Letters(100));
  Answer(1);
  EXPECT_EQ(client_->stream(1).Take().size(), 1u);
  EXPECT_EQ(server_->Take(), Lines{"opened 1"});
  (*client_)->input().Consumed(1);
  Run();
  EXPECT_EQ(client_->stream(1).Take().back(), "trailers done");
  EndAtClient(1);
  EXPECT_EQ(server_->Take(), Lines{"opened 2"});
}

TEST_F(RawPeerTest, NothingIsSentAboutAStreamThatNeverOpened) {
  Begin(ClientConfig());
  raw_->SendHello(/*stream_window=*/4096, /*max_streams=*/1);
  Run();
  raw_->Take();
  peer_->Open(1);
  peer_->Open(2);
  (*peer_)->output().SendReset(2, absl::CancelledError("x"));
  (*peer_)->streams().Detach(2);
  Run();
  EXPECT_EQ(raw_->Take(), Lines{"headers 1 open"});
}

TEST_F(RawPeerTest, StreamsAboveTheLimitAreRefused) {
  Config config = ServerConfig();
  config.max_streams = 2;
  Open(config);
  for (uint32_t stream : {1, 2, 3}) {
    raw_->Send(Header(FrameType::kHeaders, stream));
    raw_->Send(Header(FrameType::kMessage, stream));
  }
  Run();
  EXPECT_EQ(peer_->Take(), (Lines{"opened 1", "opened 2"}));
  EXPECT_EQ(raw_->Take(), Lines{"reset 3 14"});
  raw_->Send(Header(FrameType::kReset, 1, 1));
  raw_->Send(Header(FrameType::kHeaders, 4));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"opened 4"});
}

}  // namespace
}  // namespace session
}  // namespace penstock
