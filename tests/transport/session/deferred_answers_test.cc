// Tests which releases and credits wait for the next frame.

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/session/config.h"

namespace penstock {
namespace session {
namespace {

constexpr bool kLast = true;

// A client and a server that use messages in place, and defer their answers.
class DeferredAnswersTest : public SessionTest {
 protected:
  DeferredAnswersTest() {
    client_config_.defers_answers = true;
    server_config_.defers_answers = true;
    fast_options_.can_load = true;
  }

  void Call(uint32_t stream) {
    client_->Open(stream);
    Announce(client_.get(), stream, kLast);
    Run();
  }
  // Sends a message that is announced.
  static void Announce(Peer* from, uint32_t stream, bool is_last) {
    (*from)->output().SendMessage(stream, Owned(ToPayload(Letters(5000))),
                                  /*compressed=*/false, is_last);
  }
  void Respond(uint32_t stream) {
    Announce(server_.get(), stream, !kLast);
    (*server_)->output().SendTrailers(stream, "ok");
    Run();
  }
  // Returns the number of messages that the side's peer has not released.
  static size_t Kept(Peer* of) { return (*of)->output().exposed(); }
};

TEST_F(DeferredAnswersTest, ReleasesLeaveWithResponseAndNextCall) {
  OpenWithPath();
  Call(1);
  EXPECT_EQ(Kept(client_.get()), 1u);
  EXPECT_EQ(fast().counters(kServer).packets, 0u);
  Respond(1);
  EXPECT_EQ(Kept(client_.get()), 0u);
  EXPECT_EQ(fast().counters(kServer).packets, 1u);
  EXPECT_EQ(fast().counters(kClient).packets, 1u);
  EXPECT_EQ(Kept(server_.get()), 1u);
  Call(2);
  EXPECT_EQ(Kept(server_.get()), 0u);
  EXPECT_EQ(fast().counters(kClient).packets, 2u);
}

TEST_F(DeferredAnswersTest, OwnerSendsThem) {
  OpenWithPath();
  Call(1);
  EXPECT_TRUE((*server_)->has_deferred());
  (*server_)->SendDeferred();
  EXPECT_FALSE((*server_)->has_deferred());
  Run();
  EXPECT_EQ(Kept(client_.get()), 0u);
}

TEST_F(DeferredAnswersTest, PeerThatMaySendMoreGetsThemAtOnce) {
  OpenWithPath();
  client_->Open(1);
  for (uint64_t n = 1; n <= 3; ++n) {
    Announce(client_.get(), 1, !kLast);
    Run();
    EXPECT_EQ(Kept(client_.get()), 0u);
    EXPECT_EQ(fast().counters(kServer).packets, n);
  }
}

TEST_F(DeferredAnswersTest, OthersTakeThemAlong) {
  OpenWithPath();
  Call(1);
  client_->Open(2);
  Announce(client_.get(), 2, !kLast);
  Run();
  EXPECT_EQ(Kept(client_.get()), 0u);
  EXPECT_EQ(fast().counters(kServer).packets, 1u);
}

TEST_F(DeferredAnswersTest, EighthIsSent) {
  OpenWithPath();
  for (uint32_t stream = 1; stream < 8; ++stream) Call(stream);
  EXPECT_EQ(Kept(client_.get()), 7u);
  Call(8);
  EXPECT_EQ(Kept(client_.get()), 0u);
  EXPECT_EQ(fast().counters(kServer).packets, 1u);
}

TEST_F(DeferredAnswersTest, EndedStreamsCountAsAnswered) {
  OpenWithPath();
  Call(1);
  (*server_)->streams().Detach(1);
  Run();
  EXPECT_EQ(Kept(client_.get()), 1u);
  EXPECT_TRUE((*server_)->has_deferred());
}

TEST_F(DeferredAnswersTest, CreditWaitsWithTheRelease) {
  server_config_.stream_window = 10000;
  OpenWithPath();
  Call(1);
  (*server_)->input().Consumed(1);
  Run();
  EXPECT_EQ(fast().counters(kServer).packets, 0u);
  Respond(1);
  EXPECT_EQ(fast().counters(kServer).packets, 1u);
}

TEST_F(DeferredAnswersTest, CreditOfAnOpenStreamIsSentAtOnce) {
  server_config_.stream_window = 10000;
  OpenWithPath();
  client_->Open(1);
  Announce(client_.get(), 1, !kLast);
  Run();
  (*server_)->input().Consumed(1);
  Run();
  EXPECT_EQ(fast().counters(kServer).packets, 2u);
}

TEST_F(DeferredAnswersTest, FailureThatEndsAReadIsReportedAtOnce) {
  client_config_.defers_answers = false;
  server_config_.max_receive_bytes = 100;
  OpenWithPath();
  Call(1);
  EXPECT_EQ(Kept(client_.get()), 0u);
}

TEST_F(DeferredAnswersTest, NoneAreLeftAfterTheEnd) {
  OpenWithPath();
  Call(1);
  (*server_)->Close(absl::UnavailableError("over"));
  EXPECT_FALSE((*server_)->has_deferred());
}

}  // namespace
}  // namespace session
}  // namespace penstock
