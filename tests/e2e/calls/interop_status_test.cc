// Tests gRPC's published interoperability cases about deadlines, cancellation,
// metadata and status. The comment of each test names the published case.

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class InteropStatusTest : public ServiceTest {
 protected:
  // Expects the requested status, from either kind of call.
  void ExpectEchoed(const std::string& message) {
    EchoStatus wanted;
    wanted.set_code(grpc::StatusCode::UNKNOWN);
    wanted.set_message(message);
    SimpleRequest request;
    *request.mutable_response_status() = wanted;
    Call unary;
    SimpleResponse response;
    grpc::Status status = stub_->UnaryCall(&unary, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
    EXPECT_EQ(status.error_message(), message);

    Call streaming;
    auto stream = stub_->FullDuplexCall(&streaming);
    StreamingOutputCallRequest first;
    *first.mutable_response_status() = wanted;
    EXPECT_TRUE(stream->Write(first));
    EXPECT_TRUE(stream->WritesDone());
    StreamingOutputCallResponse none;
    EXPECT_FALSE(stream->Read(&none));
    status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
    EXPECT_EQ(status.error_message(), message);
  }

  static void AddEchoes(Call* call) {
    call->AddMetadata(kEchoInitial, "test_initial_metadata_value");
    call->AddMetadata(kEchoTrailing, "\xab\xab\xab");
  }

  static void ExpectEchoes(const Call& call) {
    const auto& initial = call.GetServerInitialMetadata();
    auto found = initial.find(kEchoInitial);
    ASSERT_NE(found, initial.end());
    EXPECT_EQ(found->second, "test_initial_metadata_value");
    const auto& trailing = call.GetServerTrailingMetadata();
    found = trailing.find(kEchoTrailing);
    ASSERT_NE(found, trailing.end());
    EXPECT_EQ(found->second, "\xab\xab\xab");
  }
};

// gRPC's case cancel_after_begin. The published case cancels immediately. This
// test waits for the server, so that the cancellation is transmitted.
TEST_P(InteropStatusTest, CancellationAfterTheBeginningReachesBothSides) {
  Call call;
  StreamingInputCallResponse response;
  auto writer = stub_->StreamingInputCall(&call, &response);
  ASSERT_TRUE(service_.AwaitBegun(1));
  call.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(service_.AwaitCancelled(1));
  ExpectTraffic(0, 0);
}

// Runs gRPC's published case cancel_after_begin.
TEST_P(InteropStatusTest, CancellationAtOnceEndsTheCall) {
  Call call;
  StreamingInputCallResponse response;
  auto writer = stub_->StreamingInputCall(&call, &response);
  call.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// gRPC's case cancel_after_first_response.
TEST_P(InteropStatusTest, CancellationAfterAResponseReachesBothSides) {
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  ASSERT_TRUE(stream->Write(RequestOf(31415, 27182)));
  StreamingOutputCallResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.payload().body().size(), 31415u);
  call.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(service_.AwaitCancelled(1));
  ExpectTraffic(1, 1);
}

// gRPC's case timeout_on_sleeping_server. The server waits for messages that
// never come.
TEST_P(InteropStatusTest, DeadlineEndsACallThatTheServerDoesNotEnd) {
  // Connects first, so that the deadline expires during the call and not during
  // the connection attempt.
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Call call;
  call.set_deadline(In(std::chrono::milliseconds(50)));
  auto stream = stub_->FullDuplexCall(&call);
  StreamingOutputCallRequest request;
  *request.mutable_payload() = ZeroPayload(27182);
  stream->Write(request);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(service_.AwaitCancelled(1));
  ExpectTraffic(2, 1);
}

// gRPC's case custom_metadata.
TEST_P(InteropStatusTest, MetadataComesBackWithUnaryAndWithStreamingCalls) {
  Call unary;
  AddEchoes(&unary);
  SimpleRequest request;
  request.set_response_size(314159);
  *request.mutable_payload() = ZeroPayload(271828);
  SimpleResponse response;
  ASSERT_TRUE(stub_->UnaryCall(&unary, request, &response).ok());
  ExpectEchoes(unary);

  Call streaming;
  AddEchoes(&streaming);
  auto stream = stub_->FullDuplexCall(&streaming);
  EXPECT_TRUE(stream->Write(RequestOf(314159, 271828)));
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse streamed;
  EXPECT_TRUE(stream->Read(&streamed));
  EXPECT_FALSE(stream->Read(&streamed));
  EXPECT_TRUE(stream->Finish().ok());
  ExpectEchoes(streaming);
  ExpectTraffic(2, 2);
}

// gRPC's case status_code_and_message.
TEST_P(InteropStatusTest, StatusComesWithItsMessage) {
  ExpectEchoed("test status message");
}

// gRPC's case special_status_message.
TEST_P(InteropStatusTest, MessageOfAStatusMayHoldAnyText) {
  ExpectEchoed(
      "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP "
      "\xf0\x9f\x98\x88\t\n");
}

// gRPC's case unimplemented_method.
TEST_P(InteropStatusTest, MethodThatNobodyWroteIsUnimplemented) {
  Call call;
  Empty response;
  EXPECT_EQ(stub_->UnimplementedCall(&call, Empty(), &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  ExpectTraffic(1, 0);
}

// gRPC's case unimplemented_service.
TEST_P(InteropStatusTest, ServiceThatNobodyRegisteredIsUnimplemented) {
  auto stub = UnimplementedService::NewStub(channel());
  Call call;
  Empty response;
  EXPECT_EQ(stub->UnimplementedCall(&call, Empty(), &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  ExpectTraffic(1, 0);
}

INSTANTIATE_TEST_SUITE_P(Over, InteropStatusTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
