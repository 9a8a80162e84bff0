// Tests that keepalive pings work as in stock gRPC. They detect a hung peer,
// keep an idle connection, and end a connection with too many pings. Waits for
// real time, because gRPC has no other clock.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;

grpc::ChannelArguments PingEvery(milliseconds time, milliseconds timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, time.count());
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, timeout.count());
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

// A test whose server is a process that can be stopped.
class HungServerTest : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    server_ = StartPeer("server", {NameOf(GetParam())});
    ASSERT_NE(server_, nullptr);
    auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    auto arguments = PingEvery(milliseconds(1000), milliseconds(500));
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", *port),
        CredentialsFor(GetParam(), grpc::InsecureChannelCredentials()),
        arguments);
    stub_ = TestService::NewStub(channel_);
  }

  std::unique_ptr<Child> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(HungServerTest, CallEndsAndTheChannelWorksWhenTheServerGoesOn) {
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  ASSERT_TRUE(PingPong(stream.get(), 100000));
  const auto stopped = std::chrono::steady_clock::now();
  server_->Suspend();
  StreamingOutputCallResponse none;
  EXPECT_FALSE(stream->Read(&none));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              testing::HasSubstr("keepalive watchdog timeout"));
  const auto took = std::chrono::steady_clock::now() - stopped;
  EXPECT_GT(took, milliseconds(500));
  EXPECT_LT(took, milliseconds(3000));
  server_->Resume();
  Call next;
  next.set_wait_for_ready(true);
  auto again = stub_->FullDuplexCall(&next);
  EXPECT_TRUE(PingPong(again.get(), 100000));
  EXPECT_TRUE(again->WritesDone());
  EXPECT_TRUE(again->Finish().ok());
}

class KeepaliveTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~KeepaliveTest() override { StopServing(milliseconds(0)); }

  // Starts a server that tolerates pings at this interval, but no more frequent
  // pings.
  void ServeAllowingPingsEvery(milliseconds interval) {
    Serve(&service_, [&](grpc::ServerBuilder* builder) {
      builder->AddChannelArgument(
          GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
          static_cast<int>(interval.count()));
      builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    });
  }

  static void ExpectWorks(TestService::Stub* stub) {
    Call call;
    call.set_wait_for_ready(true);
    Empty response;
    const grpc::Status status = stub->EmptyCall(&call, Empty(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  TestServiceImpl service_;
};

TEST_P(KeepaliveTest, ServerEndsTheCallOfAClientThatHangs) {
  Serve(&service_, [](grpc::ServerBuilder* builder) {
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 200);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 200);
  });
  auto client = StartPeer("stream", {NameOf(GetParam()), address()});
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Find("under way").has_value());
  const auto stopped = std::chrono::steady_clock::now();
  client->Suspend();
  EXPECT_TRUE(service_.AwaitCancelled(1));
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, milliseconds(3000));
  client->Resume();
  EXPECT_THAT(client->ReadAll(), testing::HasSubstr("status 14 "));
}

TEST_P(KeepaliveTest, IdleStreamStaysUpWhereTheServerPermitsPings) {
  constexpr milliseconds kPeriod(60);
  ServeAllowingPingsEvery(milliseconds(1));
  auto channel = NewChannel(PingEvery(kPeriod, milliseconds(2000)));
  auto stub = TestService::NewStub(channel);
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  ASSERT_TRUE(PingPong(stream.get()));
  EXPECT_FALSE(
      channel->WaitForStateChange(GRPC_CHANNEL_READY, In(5 * kPeriod)));
  EXPECT_TRUE(PingPong(stream.get(), 1 << 20));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(*channel, 2, 2);
}

TEST_P(KeepaliveTest, TooManyPingsEndTheConnectionAndTheChannelMakesAnother) {
  ServeAllowingPingsEvery(std::chrono::minutes(5));
  // Sends a ping every 100 ms. The timeout ends the connection only if a ping
  // stays unanswered, and delays no other ping.
  auto arguments = PingEvery(milliseconds(100), kPatience);
  auto with_call = NewChannel(arguments);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  auto without_calls = NewChannel(arguments);
  auto stub = TestService::NewStub(with_call);
  auto idle_stub = TestService::NewStub(without_calls);
  ASSERT_TRUE(MakeEmptyCall(idle_stub.get()).ok());
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  ASSERT_TRUE(PingPong(stream.get()));
  StreamingOutputCallResponse none;
  EXPECT_FALSE(stream->Read(&none));
  const grpc::Status status = stream->Finish();
  ASSERT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              testing::ContainsRegex("[Tt]oo.many.pings"));
  EXPECT_TRUE(
      without_calls->WaitForStateChange(GRPC_CHANNEL_READY, In(kPatience)));
  for (auto* each : {stub.get(), idle_stub.get()}) ExpectWorks(each);
  for (auto& each : {with_call, without_calls}) ExpectPath(*each);
}

// Returns all paths except that of stock clients, which would only test stock
// code.
auto Paths() {
  return testing::ValuesIn(
      IsInVm() ? std::vector<Path>{Path::kVerbs}
               : std::vector<Path>{Path::kShm, Path::kTcp, Path::kStockServer});
}
INSTANTIATE_TEST_SUITE_P(Over, HungServerTest, Paths(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, KeepaliveTest, Paths(), PathName());

}  // namespace
}  // namespace penstock::e2e
