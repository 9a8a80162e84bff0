// Tests the beginning and the end of calls: deadlines, half-closes, corked and
// last messages.

#include <chrono>
#include <future>
#include <memory>

#include "gtest/gtest.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

class CallShapeTest : public StackTest {
 protected:
  // Starts the server, with the scripts that the test has set.
  void Begin() {
    Serve(&service_);
    stub_ = TestService::NewStub(channel());
  }
  // Stops the server before its service is destroyed.
  ~CallShapeTest() override { StopServing(milliseconds(0)); }

  ScriptedService service_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(CallShapeTest, DeadlineOfTheClientIsTheServersToo) {
  system_clock::time_point seen;
  service_.empty = [&](grpc::ServerContext* context) {
    seen = context->deadline();
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  const auto deadline = In(seconds(7));
  call.set_deadline(deadline);
  Empty response;
  ASSERT_TRUE(stub_->EmptyCall(&call, Empty(), &response).ok());
  // Allows a small difference, because a deadline is sent as the remaining
  // time, with few digits.
  EXPECT_LT(seen - deadline, milliseconds(500));
  EXPECT_LT(deadline - seen, milliseconds(500));
  ExpectTraffic(1, 1);
}

TEST_P(CallShapeTest, CallWithoutADeadlineHasNoneAtTheServer) {
  system_clock::time_point seen;
  service_.empty = [&](grpc::ServerContext* context) {
    seen = context->deadline();
    return grpc::Status::OK;
  };
  Begin();
  grpc::ClientContext call;
  Empty response;
  ASSERT_TRUE(stub_->EmptyCall(&call, Empty(), &response).ok());
  EXPECT_EQ(seen, system_clock::time_point::max());
}

// Tests calls that a server makes while it serves a call, over the same path.
class PropagationTest : public CallShapeTest {
 protected:
  // Makes the handler of the unary method wait for a stream that does not end
  // by itself.
  void BeginNesting() {
    service_.unary = [this](grpc::ServerContext* outer, const SimpleRequest&,
                            SimpleResponse*) {
      auto call = grpc::ClientContext::FromServerContext(*outer);
      auto stream = stub_->FullDuplexCall(call.get());
      const grpc::Status status = stream->Finish();
      inner_ended_.set_value(status.error_code());
      return status;
    };
    service_.duplex = [this](grpc::ServerContext*, ServerStream* stream) {
      inner_began_.set_value();
      ReadAll(stream);
      return grpc::Status::OK;
    };
    Begin();
  }

  std::promise<void> inner_began_;
  std::promise<grpc::StatusCode> inner_ended_;
};

TEST_P(PropagationTest, DeadlinePassesOnToCallsOfTheServer) {
  BeginNesting();
  Call call;
  call.set_deadline(In(milliseconds(300)));
  SimpleResponse response;
  EXPECT_EQ(stub_->UnaryCall(&call, SimpleRequest(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  auto inner = inner_ended_.get_future();
  ASSERT_EQ(inner.wait_for(kPatience), std::future_status::ready);
  // Accepts two reasons for the end of the inner call: its own deadline, and
  // the end of the outer call.
  const grpc::StatusCode code = inner.get();
  EXPECT_TRUE(code == grpc::StatusCode::DEADLINE_EXCEEDED ||
              code == grpc::StatusCode::CANCELLED)
      << code;
}

TEST_P(PropagationTest, CancellationPassesOnToCallsOfTheServer) {
  BeginNesting();
  Call call;
  auto outer = std::async(std::launch::async, [&] {
    SimpleResponse response;
    return stub_->UnaryCall(&call, SimpleRequest(), &response);
  });
  ASSERT_EQ(inner_began_.get_future().wait_for(kPatience),
            std::future_status::ready);
  call.TryCancel();
  EXPECT_EQ(outer.get().error_code(), grpc::StatusCode::CANCELLED);
  auto inner = inner_ended_.get_future();
  ASSERT_EQ(inner.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(inner.get(), grpc::StatusCode::CANCELLED);
}

TEST_P(CallShapeTest, ServerMaySendAfterTheClientsHalfClose) {
  constexpr int kCount = 5;
  service_.duplex = [&](grpc::ServerContext*, ServerStream* stream) {
    EXPECT_EQ(ReadAll(stream), 1);
    for (int i = 0; i < kCount; ++i) stream->Write(ResponseOf(60000));
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  EXPECT_TRUE(stream->Write(RequestOf(0, 60000)));
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  for (int i = 0; i < kCount; ++i) EXPECT_TRUE(stream->Read(&response));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(1, kCount);
}

TEST_P(CallShapeTest, ServerMayEndACallThatTheClientStillWritesTo) {
  service_.duplex = [](grpc::ServerContext*, ServerStream* stream) {
    StreamingOutputCallRequest request;
    stream->Read(&request);
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "enough");
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  while (stream->Write(RequestOf(0, 60000))) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(status.error_message(), "enough");
  ExpectPath(*channel());
}

TEST_P(CallShapeTest, CorkedBeginningGoesWithTheLastMessage) {
  service_.duplex = [](grpc::ServerContext* context, ServerStream* stream) {
    EXPECT_EQ(context->client_metadata().count("x-corked"), 1u);
    EXPECT_EQ(ReadAll(stream), 1);
    stream->WriteLast(ResponseOf(3), grpc::WriteOptions());
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  call.AddMetadata("x-corked", "");
  call.set_initial_metadata_corked(true);
  auto stream = stub_->FullDuplexCall(&call);
  stream->WriteLast(RequestOf(0, 100), grpc::WriteOptions());
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.payload().body().size(), 3u);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(1, 1);
}

TEST_P(CallShapeTest, CorkedMessagesComeWithTheNextThatIsNot) {
  service_.duplex = [](grpc::ServerContext*, ServerStream* stream) {
    const int count = ReadAll(stream);
    stream->Write(ResponseOf(count));
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  const auto corked = grpc::WriteOptions().set_corked();
  EXPECT_TRUE(stream->Write(RequestOf(0, 10), corked));
  EXPECT_TRUE(stream->Write(RequestOf(0, 100000), corked));
  EXPECT_TRUE(stream->Write(RequestOf(0, 10)));
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.payload().body().size(), 3u);
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(3, 1);
}

TEST_P(CallShapeTest, InitialMetadataNeedNotWaitForAMessage) {
  service_.duplex = [](grpc::ServerContext* context, ServerStream* stream) {
    context->AddInitialMetadata("x-early", "yes");
    stream->SendInitialMetadata();
    EXPECT_EQ(ReadAll(stream), 1);
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  stream->WaitForInitialMetadata();
  EXPECT_EQ(call.GetServerInitialMetadata().count("x-early"), 1u);
  EXPECT_TRUE(stream->Write(RequestOf(0, 10)));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic(1, 0);
}

INSTANTIATE_TEST_SUITE_P(Over, CallShapeTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, PropagationTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
