// Tests the beginning and the end of servers and channels within one process.

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class LifecycleTest : public ServiceTest {
 protected:
  // Waits until the client has learned that the server or the connection is
  // ending.
  bool AwaitNotReady() {
    return channel()->WaitForStateChange(GRPC_CHANNEL_READY, In(kPatience));
  }

  static void ExpectEndsWell(Stream* stream) {
    EXPECT_TRUE(stream->WritesDone());
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
};

TEST_P(LifecycleTest, ShutdownLetsACallThatRunsFinish) {
  Call call;
  auto stream = OpenStream(&call);
  ExpectTraffic(1, 1);
  std::thread stopping([this] { StopServing(kPatience); });
  EXPECT_TRUE(AwaitNotReady());
  // Sends small and large messages, because both kinds must still work in both
  // directions.
  EXPECT_TRUE(PingPong(stream.get()));
  EXPECT_TRUE(PingPong(stream.get(), 1 << 20));
  EXPECT_EQ(MakeEmptyCall(stub_.get()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  ExpectEndsWell(stream.get());
  stopping.join();
}

TEST_P(LifecycleTest, ShutdownCancelsWhatOutlastsItsDeadline) {
  Call call;
  auto stream = OpenStream(&call);
  StopServing(std::chrono::milliseconds(50));
  EXPECT_TRUE(service_.AwaitCancelled(1));
  StreamingOutputCallResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(LifecycleTest, ChannelReconnectsToANewServerOnTheSamePort) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  for (int round = 0; round < 3; ++round) {
    StopServing(std::chrono::milliseconds(0));
    ASSERT_TRUE(AwaitNotReady());
    Serve(&service_);
    Call call;
    call.set_wait_for_ready(true);
    EXPECT_TRUE(PingPong(stub_->FullDuplexCall(&call).get()));
    ExpectTraffic(1, 1);
  }
}

TEST_P(LifecycleTest, CallThatWaitsForReadyOutlivesAServersAbsence) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  auto channel = NewChannel(arguments);
  auto stub = TestService::NewStub(channel);
  StopServing(std::chrono::milliseconds(0));
  EXPECT_EQ(MakeEmptyCall(stub.get()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  auto waiting = std::async(std::launch::async, [&] {
    Call call;
    call.set_wait_for_ready(true);
    Empty response;
    return stub->EmptyCall(&call, Empty(), &response);
  });
  Serve(&service_);
  EXPECT_TRUE(waiting.get().ok());
  ExpectTraffic(*channel, 1, 1);
}

TEST_P(LifecycleTest, CallsOutliveTheirChannel) {
  auto channel = NewChannel();
  auto stub = TestService::NewStub(channel);
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<Call>());
    streams.push_back(stub->FullDuplexCall(calls.back().get()));
    ASSERT_TRUE(PingPong(streams.back().get()));
  }
  ExpectTraffic(*channel, 8, 8);
  stub.reset();
  channel.reset();
  for (auto& stream : streams) {
    EXPECT_TRUE(PingPong(stream.get(), 1 << 17));
    ExpectEndsWell(stream.get());
  }
}

TEST_P(LifecycleTest, ChannelsComeAndGoWhileOthersWork) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  });
  for (int round = 0; round < 30; ++round) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
    ExpectTraffic(*channel, 1, 1);
  }
  stop = true;
  busy.join();
}

TEST_P(LifecycleTest, EachChannelReachesItsOwnServer) {
  constexpr int kCalls = 50;
  TestServiceImpl service;
  Stack others[] = {Stack(GetParam()), Stack(GetParam())};
  std::vector<std::thread> callers;
  for (Stack& other : others) {
    other.Serve(&service);
    callers.emplace_back([channel = other.channel()] {
      auto stub = TestService::NewStub(channel);
      for (int i = 0; i < kCalls; ++i) {
        EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
      }
    });
  }
  Call call;
  auto stream = OpenStream(&call);
  for (std::thread& caller : callers) caller.join();
  for (Stack& other : others) other.ExpectTraffic(kCalls, kCalls);
  ExpectTraffic(1, 1);
  ExpectEndsWell(stream.get());
}

INSTANTIATE_TEST_SUITE_P(Over, LifecycleTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
