// Tests many calls on one connection, none of which may block another.

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr size_t kMi = 1 << 20;

class ManyStreamsTest : public StackTest {
 protected:
  void SetUp() override {
    Serve(nullptr, [this](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&service_);
    });
  }
  // Stops the server before its service is destroyed.
  ~ManyStreamsTest() override { StopServing(std::chrono::milliseconds(0)); }

  RawEchoService service_;
};

TEST_P(ManyStreamsTest, TwoHundredStreamsShareAChannel) {
  constexpr size_t kStreams = 200;
  constexpr size_t kRounds = 5;
  // Returns a size: every seventh message is large enough to be announced.
  const auto size_of = [](size_t i) { return i % 7 == 0 ? 70000 : 10 * i; };
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<RawStream>> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    calls.push_back(std::make_unique<Call>());
    streams.push_back(
        std::make_unique<RawStream>(channel(), calls.back().get()));
  }
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kStreams; ++i) {
      ASSERT_TRUE(streams[i]->Write(Pattern(size_of(i), i + round)));
    }
    for (size_t i = 0; i < kStreams; ++i) {
      EXPECT_TRUE(streams[i]->Read() == Pattern(size_of(i), i + round)) << i;
    }
  }
  for (auto& stream : streams) {
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_TRUE(stream->Finish().ok());
  }
  ExpectTraffic(kStreams * kRounds, kStreams * kRounds);
}

class SlowReaderTest : public StackTest {
 protected:
  // The number of messages on a stream, more than all windows and buffers hold
  // together.
  static constexpr int kMessages = 64;
  static constexpr size_t kBytes = kMi / 2;

  void Begin() {
    Serve(&service_);
    stub_ = TestService::NewStub(channel());
  }
  ~SlowReaderTest() override { StopServing(std::chrono::milliseconds(0)); }

  // Sets a script: small streams echo, and streams with "x-slow" run `slow`.
  void Script(std::function<void(ServerStream*)> slow) {
    service_.duplex = [slow](grpc::ServerContext* context,
                             ServerStream* stream) {
      if (context->client_metadata().count("x-slow") > 0) {
        slow(stream);
        return grpc::Status::OK;
      }
      StreamingOutputCallRequest request;
      while (stream->Read(&request)) {
        stream->Write(ResponseOf(request.payload().body().size()));
      }
      return grpc::Status::OK;
    };
  }

  void ExpectOthersAreServed() {
    Call call;
    auto stream = stub_->FullDuplexCall(&call);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(PingPong(stream.get(), i % 10 == 0 ? 100000 : 100));
    }
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_TRUE(stream->Finish().ok());
  }

  ScriptedService service_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(SlowReaderTest, ClientThatDoesNotReadHoldsUpNoOtherStream) {
  Script([](ServerStream* stream) {
    for (int i = 0; i < kMessages; ++i) stream->Write(ResponseOf(kBytes));
  });
  Begin();
  Call slow;
  slow.AddMetadata("x-slow", "");
  auto stream = stub_->FullDuplexCall(&slow);
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  ExpectOthersAreServed();
  for (int i = 1; i < kMessages; ++i) {
    ASSERT_TRUE(stream->Read(&response)) << i;
    EXPECT_EQ(response.payload().body().size(), kBytes);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(100, 100 + kMessages);
}

TEST_P(SlowReaderTest, ServerThatDoesNotReadHoldsUpNoOtherStream) {
  std::promise<void> may_read;
  std::promise<int> read;
  Script([&](ServerStream* stream) {
    may_read.get_future().wait();
    read.set_value(ReadAll(stream));
  });
  Begin();
  Call slow;
  slow.AddMetadata("x-slow", "");
  auto stream = stub_->FullDuplexCall(&slow);
  auto writing = std::async(std::launch::async, [&] {
    int count = 0;
    while (count < kMessages && stream->Write(RequestOf(0, kBytes))) ++count;
    stream->WritesDone();
    return count;
  });
  ExpectOthersAreServed();
  may_read.set_value();
  EXPECT_EQ(writing.get(), kMessages);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(read.get_future().get(), kMessages);
  ExpectTraffic(100 + kMessages, 100);
}

class ManyCallsTest : public ServiceTest {};

TEST_P(ManyCallsTest, ThreadsCallAtTheSameTime) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Call call;
        SimpleRequest request;
        const int size = i % 10 == 0 ? 200000 : 100 * thread;
        *request.mutable_payload() = ZeroPayload(size);
        request.set_response_size(size);
        SimpleResponse response;
        const grpc::Status status = stub_->UnaryCall(&call, request, &response);
        EXPECT_TRUE(status.ok()) << status.error_message();
        EXPECT_EQ(int(response.payload().body().size()), size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectTraffic(kThreads * kCalls, kThreads * kCalls);
}

TEST_P(ManyCallsTest, LargeCallsMayBeInFlightTogether) {
  constexpr int kInFlight = 32;
  struct Pending {
    Call call;
    SimpleResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<SimpleResponse>> reader;
  };
  SimpleRequest request;
  *request.mutable_payload() = ZeroPayload(kMi);
  request.set_response_size(kMi);
  grpc::CompletionQueue queue;
  Pending pending[kInFlight];
  for (Pending& each : pending) {
    each.reader = stub_->AsyncUnaryCall(&each.call, request, &queue);
    each.reader->Finish(&each.response, &each.status, &each);
  }
  for (int i = 0; i < kInFlight; ++i) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    const auto* each = static_cast<Pending*>(tag);
    EXPECT_TRUE(each->status.ok()) << each->status.error_message();
    EXPECT_EQ(each->response.payload().body().size(), kMi);
  }
  ExpectTraffic(kInFlight, kInFlight);
}

TEST_P(ManyCallsTest, StreamOfManySmallMessagesLosesNone) {
  constexpr int kCount = 10000;
  Call call;
  StreamingInputCallResponse response;
  auto writer = stub_->StreamingInputCall(&call, &response);
  StreamingInputCallRequest request;
  *request.mutable_payload() = ZeroPayload(3);
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(writer->Write(request));
  EXPECT_TRUE(writer->WritesDone());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(response.aggregated_payload_size(), 3 * kCount);
  ExpectTraffic(kCount, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, ManyStreamsTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, SlowReaderTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, ManyCallsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
