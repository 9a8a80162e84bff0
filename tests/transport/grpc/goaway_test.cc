// Tests GOAWAY frame by frame. One side is gRPC, and the test writes the bytes
// of the other side.

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/grpc/client_goaway.h"
#include "tests/transport/grpc/finishing_service.h"
#include "tests/transport/grpc/state_gate.h"
#include "tests/transport/grpc/wire_peer.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

using wire::FrameType;
using wire::kLastStreamUnknown;

class ServerGoawayTest : public testing::Test {
 protected:
  ~ServerGoawayTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  void Serve(int max_age_ms) {
    grpc::ServerBuilder builder;
    Enable(&builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(&service_);
    if (max_age_ms > 0) {
      builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, max_age_ms);
    }
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    client_ = WirePeer::Connect(port);
    ASSERT_NE(client_, nullptr);
  }
  void OpenCall(uint32_t stream) { client_->OpenCall(stream); }
  void EndCall(uint32_t stream) {
    client_->Send(FrameType::kHalfClose, stream);
  }
  // Returns the next frame that is not "headers", because "headers 1" may
  // precede "trailers 1".
  std::string NextButHeaders() {
    std::string next = client_->Next();
    while (next.substr(0, 7) == "headers") next = client_->Next();
    return next;
  }

  FinishingService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<WirePeer> client_;
};

TEST_F(ServerGoawayTest, NamesTheLastStreamOnceThePingIsAnswered) {
  Serve(/*max_age_ms=*/100);
  OpenCall(1);
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  OpenCall(2);  // the client has not read the GOAWAY yet
  client_->Pong();
  EXPECT_EQ(client_->Next(), "goaway 2");
  EndCall(1);
  EXPECT_EQ(NextButHeaders(), "trailers 1");
  EndCall(2);
  EXPECT_EQ(NextButHeaders(), "trailers 2");
  EXPECT_EQ(client_->Next(), "closed");
}

TEST_F(ServerGoawayTest, ServesWhatComesBeforeThePingIsAnswered) {
  Serve(/*max_age_ms=*/100);
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  for (uint32_t stream : {1, 2, 3}) {
    OpenCall(stream);
    EndCall(stream);
    EXPECT_EQ(NextButHeaders(), absl::StrCat("trailers ", stream));
  }
  client_->Pong();
  EXPECT_EQ(client_->Next(), "goaway 3");
  EXPECT_EQ(client_->Next(), "closed");
}

TEST_F(ServerGoawayTest, ServesNothingAfterTheLastOne) {
  Serve(/*max_age_ms=*/100);
  OpenCall(1);
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  client_->Pong();
  EXPECT_EQ(client_->Next(), "goaway 1");
  OpenCall(2);
  EndCall(2);
  EndCall(1);
  EXPECT_EQ(NextButHeaders(), "trailers 1");
  EXPECT_EQ(client_->Next(), "closed");
}

TEST_F(ServerGoawayTest, AnswerToAnotherPingIsNoAnswer) {
  Serve(/*max_age_ms=*/100);
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  client_->Send(FrameType::kPong, 0, 0, std::string(8, '\x07'));
  OpenCall(1);
  EndCall(1);
  EXPECT_EQ(NextButHeaders(), "trailers 1");
  client_->Pong();
  EXPECT_EQ(client_->Next(), "goaway 1");
}

// Tests a client that never answers the ping. The server must wait for 20 s,
// and then continue.
TEST_F(ServerGoawayTest, DoesNotWaitForEverForTheAnswer) {
  Serve(/*max_age_ms=*/100);
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client_->Next(), "goaway 0");
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  EXPECT_EQ(client_->Next(), "closed");
}

TEST_F(ServerGoawayTest, DeadlineOfShutdownDoesNotWaitForTheAnswer) {
  Serve(/*max_age_ms=*/0);
  OpenCall(1);
  service_.AwaitCalls(1);
  auto shutdown = std::async(std::launch::async, [this] {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(50));
  });
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  EXPECT_EQ(client_->Next(), "goaway 1");
  EXPECT_EQ(NextButHeaders(), "closed");
  EXPECT_EQ(shutdown.wait_for(kPatience), std::future_status::ready);
}

// Tests a call during a shutdown. The call must be refused, because gRPC's
// server delivers no more calls to the application.
TEST_F(ServerGoawayTest, CallThatComesDuringAShutdownIsRefused) {
  Serve(/*max_age_ms=*/0);
  OpenCall(1);
  service_.AwaitCalls(1);
  auto shutdown = std::async(std::launch::async, [this] {
    server_->Shutdown(std::chrono::system_clock::now() + kPatience);
  });
  EXPECT_EQ(client_->Next(), "goaway 4294967295");
  EXPECT_EQ(client_->Next(), "ping");
  OpenCall(2);
  WirePeer::Received frame;
  ASSERT_TRUE(client_->Receive(&frame));
  EXPECT_EQ(frame.header.type, FrameType::kReset);
  EXPECT_EQ(frame.header.stream, 2u);
  EXPECT_EQ(frame.header.aux,
            wire::kRefused | static_cast<uint32_t>(grpc::UNAVAILABLE));
  client_->Pong();
  EXPECT_EQ(client_->Next(), "goaway 2");
  EndCall(1);
  EXPECT_EQ(NextButHeaders(), "trailers 1");
  EXPECT_EQ(client_->Next(), "closed");
}

TEST_F(ClientGoawayTest, NewCallsGoElsewhereFromTheFirstOn) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Goaway(server_.get(), kLastStreamUnknown);
  server_->Send(FrameType::kPing, 0, 0, std::string(8, '\x01'));
  EXPECT_EQ(server_->Next(), "pong");
  PendingCall second(channel_);
  std::unique_ptr<WirePeer> other;
  ASSERT_NO_FATAL_FAILURE(Accept(&other));
  ExpectCall(other.get(), 1);
  Answer(other.get(), 1);
  EXPECT_TRUE(second.Finish().ok());
  Goaway(server_.get(), 1);
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
  EXPECT_EQ(server_->Next(), "closed");
}

TEST_F(ClientGoawayTest, CallsAboveTheLastStreamAreMadeElsewhere) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  PendingCall second(channel_);
  ExpectCall(server_.get(), 2);
  Goaway(server_.get(), kLastStreamUnknown);
  Goaway(server_.get(), 1);
  std::unique_ptr<WirePeer> other;
  ASSERT_NO_FATAL_FAILURE(Accept(&other));
  ExpectCall(other.get(), 1);
  Answer(other.get(), 1);
  EXPECT_TRUE(second.Finish().ok());
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
}

TEST_F(ClientGoawayTest, RefusedCallIsMadeElsewhere) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  PendingCall second(channel_);
  ExpectCall(server_.get(), 2);
  server_->Send(FrameType::kReset, 2, wire::kRefused | 14, "no");
  std::unique_ptr<WirePeer> other;
  ASSERT_NO_FATAL_FAILURE(Accept(&other));
  ExpectCall(other.get(), 1);
  Answer(other.get(), 1);
  EXPECT_TRUE(second.Finish().ok());
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
}

TEST_F(ClientGoawayTest, CallThatIsResetOtherwiseEnds) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  server_->Send(FrameType::kReset, 1, 14, "no");
  const grpc::Status status = first_->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "no");
}

TEST_F(ClientGoawayTest, CallRefusedTwiceEnds) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  server_->Send(FrameType::kReset, 1, wire::kRefused | 14, "no");
  std::unique_ptr<WirePeer> other;
  ASSERT_NO_FATAL_FAILURE(Accept(&other));
  ExpectCall(other.get(), 1);
  other->Send(FrameType::kReset, 1, wire::kRefused | 14, "no again");
  EXPECT_EQ(first_->Finish().error_message(), "no again");
}

TEST_F(ClientGoawayTest, LastStreamThatGrowsEndsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  Goaway(server_.get(), 1);
  Goaway(server_.get(), 2);
  EXPECT_EQ(server_->Next(), "closed");
  EXPECT_EQ(first_->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ClientGoawayTest, LastStreamMayBeRepeated) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  for (uint32_t last : {kLastStreamUnknown, kLastStreamUnknown, 7u, 7u, 1u}) {
    Goaway(server_.get(), last);
  }
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
}

TEST_F(ClientGoawayTest, CallThatWaitedForAPlaceIsMadeElsewhere) {
  ASSERT_NO_FATAL_FAILURE(Begin(/*max_streams=*/1));
  PendingCall second(channel_);
  server_->Send(FrameType::kPing, 0, 0, std::string(8, '\x01'));
  EXPECT_EQ(server_->Next(), "pong");
  Goaway(server_.get(), kLastStreamUnknown);
  std::unique_ptr<WirePeer> other;
  ASSERT_NO_FATAL_FAILURE(Accept(&other));
  ExpectCall(other.get(), 1);
  Answer(other.get(), 1);
  EXPECT_TRUE(second.Finish().ok());
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
}

// A client that leaves its connection before the channel learns of it.
class LeavingTest : public ClientGoawayTest {
 protected:
  // Disables retries, so that a call fails if its only attempt fails on this
  // connection.
  void WithoutRetries() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    channel_ = NewChannel(arguments);
  }
  void BeginAndHoldNotice() {
    ASSERT_NO_FATAL_FAILURE(Begin());
    gate_ = StateGate::Close();
    ASSERT_NE(gate_, nullptr);
  }
  void ExpectCallElsewhere(PendingCall* call) {
    std::unique_ptr<WirePeer> other;
    ASSERT_NO_FATAL_FAILURE(Accept(&other));
    ExpectCall(other.get(), 1);
    Answer(other.get(), 1);
    EXPECT_TRUE(call->Finish().ok());
  }
  static constexpr std::chrono::milliseconds kAWhile{100};

  std::unique_ptr<StateGate> gate_;
};

constexpr std::chrono::milliseconds LeavingTest::kAWhile;

TEST_F(LeavingTest, StillCarriesCallsAndAnswersThePingOnceTheChannelHasHeard) {
  WithoutRetries();
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  Goaway(server_.get(), kLastStreamUnknown);
  server_->Send(FrameType::kPing, 0, 0, std::string(8, '\x01'));
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_);
  ExpectCall(server_.get(), 2);
  Answer(server_.get(), 2);
  EXPECT_TRUE(second.Finish().ok());
  gate_->Open();
  EXPECT_EQ(server_->Next(), "pong");
  PendingCall third(channel_);
  ASSERT_NO_FATAL_FAILURE(ExpectCallElsewhere(&third));
  Goaway(server_.get(), 2);
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
  EXPECT_EQ(server_->Next(), "closed");
}

TEST_F(LeavingTest, HoldsCallsThatTheServerWouldNotServe) {
  WithoutRetries();
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  Goaway(server_.get(), 1);
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_);
  EXPECT_FALSE(second.EndsWithin(kAWhile)) << "and the next one would follow";
  gate_->Open();
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the connection is going away");
  PendingCall third(channel_);
  ASSERT_NO_FATAL_FAILURE(ExpectCallElsewhere(&third));
}

TEST_F(LeavingTest, HeldCallIsMadeElsewhere) {
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  Goaway(server_.get(), 1);
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_);
  EXPECT_FALSE(second.EndsWithin(kAWhile));
  gate_->Open();
  ASSERT_NO_FATAL_FAILURE(ExpectCallElsewhere(&second));
}

TEST_F(LeavingTest, CallOnABrokenConnectionIsMadeElsewhere) {
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  server_.reset();
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_);
  EXPECT_FALSE(second.EndsWithin(kAWhile));
  gate_->Open();
  ASSERT_NO_FATAL_FAILURE(ExpectCallElsewhere(&second));
  EXPECT_EQ(first_->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(LeavingTest, HeldCallMayBeCancelled) {
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  Goaway(server_.get(), 1);
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_);
  EXPECT_FALSE(second.EndsWithin(kAWhile));
  second.Cancel();
  EXPECT_EQ(second.Finish().error_code(), grpc::StatusCode::CANCELLED);
  gate_->Open();
  Answer(server_.get(), 1);
  EXPECT_TRUE(first_->Finish().ok());
}

TEST_F(LeavingTest, HeldCallHasItsDeadline) {
  ASSERT_NO_FATAL_FAILURE(BeginAndHoldNotice());
  Goaway(server_.get(), 1);
  ASSERT_TRUE(gate_->AwaitNotice());
  PendingCall second(channel_, kAWhile);
  EXPECT_EQ(second.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  gate_->Open();
}

}  // namespace
}  // namespace core
}  // namespace penstock
