// Tests calls that the server cancels. They must end once, and must not be
// retried.

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class ServerCancelTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~ServerCancelTest() override { StopServing(std::chrono::milliseconds(0)); }

  void Begin() {
    Serve(&service_);
    stub_ = TestService::NewStub(channel());
  }

  std::atomic<int> calls_{0};
  ScriptedService service_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(ServerCancelTest, UnaryCallEndsCancelled) {
  service_.empty = [this](grpc::ServerContext* context) {
    ++calls_;
    context->TryCancel();
    return grpc::Status::OK;
  };
  Begin();
  EXPECT_EQ(MakeEmptyCall(stub_.get()).error_code(),
            grpc::StatusCode::CANCELLED);
  EXPECT_EQ(calls_, 1);
  ExpectPath(*channel());
}

TEST_P(ServerCancelTest, StreamThatHasNotAnsweredEndsCancelled) {
  service_.duplex = [this](grpc::ServerContext* context, ServerStream* stream) {
    ++calls_;
    context->TryCancel();
    ReadAll(stream);
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  StreamingOutputCallResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(calls_, 1);
}

TEST_P(ServerCancelTest, StreamEndsCancelledInItsMiddle) {
  service_.duplex = [this](grpc::ServerContext* context, ServerStream* stream) {
    ++calls_;
    StreamingOutputCallRequest request;
    EXPECT_TRUE(stream->Read(&request));
    EXPECT_TRUE(stream->Write(ResponseOf(100000)));
    EXPECT_TRUE(stream->Read(&request));  // the client has read the response
    context->TryCancel();
    ReadAll(stream);
    // Waits for the cancellation, which gRPC reports somewhat later, as over
    // HTTP/2.
    const auto end = In(kPatience);
    while (!context->IsCancelled() && std::chrono::system_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(context->IsCancelled());
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  EXPECT_TRUE(stream->Write(RequestOf(8, 8)));
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_TRUE(stream->Write(RequestOf(8, 8)));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(calls_, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, ServerCancelTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
