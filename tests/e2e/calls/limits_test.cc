// Tests a server's limits: concurrent calls, a connection's age and idleness,
// memory and threads. Calls must wait or move to another connection, and none
// may be lost.

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// The interoperability service, which also records the connections of its
// calls.
class PeerCounter final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty*,
                         Empty*) override {
    std::lock_guard<std::mutex> lock(mu_);
    peers_.insert(context->peer());
    return grpc::Status::OK;
  }
  grpc::Status FullDuplexCall(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<StreamingOutputCallResponse,
                               StreamingOutputCallRequest>* stream) override {
    return base_.FullDuplexCall(context, stream);
  }
  size_t peers() {
    std::lock_guard<std::mutex> lock(mu_);
    return peers_.size();
  }

 private:
  TestServiceImpl base_;
  std::mutex mu_;
  std::set<std::string> peers_;
};

class LimitsTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~LimitsTest() override { StopServing(std::chrono::milliseconds(0)); }

  void ServeWith(const std::map<std::string, int>& arguments) {
    Serve(&service_, [&](grpc::ServerBuilder* builder) {
      for (const auto& each : arguments) {
        builder->AddChannelArgument(each.first, each.second);
      }
    });
    Use(channel());
  }
  void Use(const std::shared_ptr<grpc::Channel>& channel) {
    stub_ = TestService::NewStub(channel);
  }

  std::unique_ptr<Stream> OpenStream(Call* call) {
    auto stream = stub_->FullDuplexCall(call);
    EXPECT_TRUE(PingPong(stream.get()));
    return stream;
  }
  static void EndWell(Stream* stream) {
    EXPECT_TRUE(stream->WritesDone());
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  grpc::StatusCode CodeOfCallWithin(std::chrono::milliseconds time) {
    grpc::ClientContext context;
    context.set_deadline(In(time));
    Empty response;
    return stub_->EmptyCall(&context, Empty(), &response).error_code();
  }
  std::future<grpc::Status> StartCall(Call* call) {
    return std::async(std::launch::async, [this, call] {
      Empty response;
      return stub_->EmptyCall(call, Empty(), &response);
    });
  }

  // Makes successful calls until the calls have used `count` connections in
  // all.
  void CallUntilPeersAre(size_t count) {
    const auto end = In(kPatience);
    while (service_.peers() < count) {
      ASSERT_LT(std::chrono::system_clock::now(), end);
      const grpc::Status status = MakeEmptyCall(stub_.get());
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }

  PeerCounter service_;
  std::unique_ptr<TestService::Stub> stub_;
};

constexpr std::chrono::milliseconds kShort(100);

class StreamsAtOnceTest : public LimitsTest {
 protected:
  void SetUp() override {
    ServeWith({{GRPC_ARG_MAX_CONCURRENT_STREAMS, 2}});
    first_ = OpenStream(&first_call_);
    second_ = OpenStream(&second_call_);
  }

  Call first_call_, second_call_;
  std::unique_ptr<Stream> first_, second_;
};

TEST_P(StreamsAtOnceTest, CallAboveTheLimitWaitsAndIsServedWhenOneEnds) {
  Call call;
  auto third = StartCall(&call);
  EXPECT_EQ(CodeOfCallWithin(kShort), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(third.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  EXPECT_EQ(service_.peers(), 0u);
  EndWell(first_.get());
  EXPECT_TRUE(third.get().ok());
  EndWell(second_.get());
  ExpectPath(*channel());
}

TEST_P(StreamsAtOnceTest, CallThatWaitsEndsAtItsDeadlineAndTakesNoPlace) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CodeOfCallWithin(kShort), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(service_.peers(), 0u);
  EXPECT_TRUE(PingPong(first_.get(), 1 << 20));
  EndWell(first_.get());
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EndWell(second_.get());
}

TEST_P(StreamsAtOnceTest, CallThatWaitsCanBeCancelled) {
  Call call;
  auto third = StartCall(&call);
  EXPECT_EQ(CodeOfCallWithin(kShort), grpc::StatusCode::DEADLINE_EXCEEDED);
  call.TryCancel();
  EXPECT_EQ(third.get().error_code(), grpc::StatusCode::CANCELLED);
  EndWell(first_.get());
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EndWell(second_.get());
}

TEST_P(StreamsAtOnceTest, ManyCallsThatWaitAreAllServed) {
  constexpr int kWaiting = 16;
  std::vector<std::future<grpc::Status>> waiting;
  for (int i = 0; i < kWaiting; ++i) {
    waiting.push_back(std::async(std::launch::async, [this] {
      Call call;
      auto stream = stub_->FullDuplexCall(&call);
      EXPECT_TRUE(PingPong(stream.get(), 100000));
      stream->WritesDone();
      return stream->Finish();
    }));
  }
  first_call_.TryCancel();
  EXPECT_FALSE(first_->Finish().ok());
  EndWell(second_.get());
  for (auto& each : waiting) EXPECT_TRUE(each.get().ok());
}

TEST_P(LimitsTest, CallsSurviveTheAgeOfTheirConnections) {
  ServeWith({{GRPC_ARG_MAX_CONNECTION_AGE_MS, 100}});
  CallUntilPeersAre(4);
}

TEST_P(LimitsTest, StreamOutlivesTheAgeOfItsConnection) {
  ServeWith({{GRPC_ARG_MAX_CONNECTION_AGE_MS, 200}});
  Call call;
  auto stream = OpenStream(&call);
  CallUntilPeersAre(2);
  EXPECT_TRUE(PingPong(stream.get()));
  EXPECT_TRUE(PingPong(stream.get(), 1 << 20));
  EndWell(stream.get());
}

TEST_P(LimitsTest, StreamThatOutlastsTheGraceOfItsConnectionEnds) {
  ServeWith({{GRPC_ARG_MAX_CONNECTION_AGE_MS, 100},
             {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 100}});
  Call call;
  auto stream = OpenStream(&call);
  StreamingOutputCallResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
}

TEST_P(LimitsTest, IdleConnectionEndsAndTheNextCallMakesAnother) {
  ServeWith({{GRPC_ARG_MAX_CONNECTION_IDLE_MS, 100}});
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(channel()->WaitForStateChange(GRPC_CHANNEL_READY, In(kPatience)));
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EXPECT_EQ(service_.peers(), 2u);
}

TEST_P(LimitsTest, ConnectionWithACallIsNotIdle) {
  ServeWith({{GRPC_ARG_MAX_CONNECTION_IDLE_MS, 100}});
  Call call;
  auto stream = OpenStream(&call);
  EXPECT_FALSE(channel()->WaitForStateChange(
      GRPC_CHANNEL_READY, In(std::chrono::milliseconds(500))));
  EndWell(stream.get());
  ExpectTraffic(1, 1);
}

TEST_P(LimitsTest, IdleClientLetsItsConnectionGo) {
  ServeWith({});
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, 100);
  auto channel = NewChannel(arguments);
  Use(channel);
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, In(kPatience)));
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_IDLE);
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EXPECT_EQ(service_.peers(), 2u);
  ExpectTraffic(*channel, 1, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, StreamsAtOnceTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, LimitsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
