// Tests messages as in gRPC's published interoperability cases
// (doc/interop-test-descriptions.md), with the published sizes. Each test's
// comment has the case's name.

#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/compression.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr int kLargeRequest = 271828;
constexpr int kLargeResponse = 314159;
constexpr int kRequestSizes[] = {27182, 8, 1828, 45904};
constexpr int kResponseSizes[] = {31415, 9, 2653, 58979};

class InteropTest : public ServiceTest {
 protected:
  static SimpleRequest LargeRequest() {
    SimpleRequest request;
    request.set_response_size(kLargeResponse);
    *request.mutable_payload() = ZeroPayload(kLargeRequest);
    return request;
  }

  // Sends a message, compressed if `compressed`. The server must refuse a
  // message whose compression differs from `expected`.
  grpc::Status SendLarge(bool compressed, bool expected) {
    Call call;
    call.set_compression_algorithm(compressed ? GRPC_COMPRESS_GZIP
                                              : GRPC_COMPRESS_NONE);
    SimpleRequest request = LargeRequest();
    request.mutable_expect_compressed()->set_value(expected);
    SimpleResponse response;
    grpc::Status status = stub_->UnaryCall(&call, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.payload().body().size(), size_t{kLargeResponse});
    }
    return status;
  }

  // Asks for a response that is compressed if `compressed`. Returns true if the
  // response was compressed.
  bool ReceiveLarge(bool compressed) {
    Call call;
    SimpleRequest request = LargeRequest();
    request.mutable_response_compressed()->set_value(compressed);
    SimpleResponse response;
    grpc::Status status = stub_->UnaryCall(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.payload().body(), std::string(kLargeResponse, '\0'));
    return CameCompressed(call.c_call());
  }

  // Returns the payload bytes that this side has sent and received, if known.
  PathReport Bytes() {
    auto reports = DescribePaths(*channel());
    return reports.empty() ? PathReport() : reports[0];
  }
};

// gRPC's case empty_unary.
TEST_P(InteropTest, EmptyMessagesComeEmpty) {
  Call call;
  Empty response;
  grpc::Status status = stub_->EmptyCall(&call, Empty(), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.ByteSizeLong(), 0u);
  ExpectTraffic(1, 1);
}

// gRPC's case large_unary.
TEST_P(InteropTest, LargeUnaryComesWhole) {
  EXPECT_FALSE(ReceiveLarge(false));
  ExpectTraffic(1, 1);
  if (IsPenstock(GetParam())) {
    EXPECT_GT(Bytes().bytes_sent, uint64_t{kLargeRequest});
    EXPECT_GT(Bytes().bytes_received, uint64_t{kLargeResponse});
  }
}

// gRPC's case client_compressed_unary. Begins with a message that the server
// must refuse.
TEST_P(InteropTest, RequestsAreCompressedCallByCall) {
  EXPECT_EQ(SendLarge(false, true).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const uint64_t before = Bytes().bytes_sent;
  EXPECT_TRUE(SendLarge(true, true).ok());
  if (IsPenstock(GetParam())) {
    EXPECT_LT(Bytes().bytes_sent - before, kLargeRequest / 10);
  }
  EXPECT_TRUE(SendLarge(false, false).ok());
  ExpectTraffic(3, 2);
}

// gRPC's case server_compressed_unary.
TEST_P(InteropTest, ResponsesAreCompressedCallByCall) {
  EXPECT_TRUE(ReceiveLarge(true));
  if (IsPenstock(GetParam())) {
    EXPECT_LT(Bytes().bytes_received, kLargeResponse / 10);
  }
  EXPECT_FALSE(ReceiveLarge(false));
  ExpectTraffic(2, 2);
}

// gRPC's case client_streaming.
TEST_P(InteropTest, StreamOfRequestsIsSummedUp) {
  Call call;
  StreamingInputCallResponse response;
  auto writer = stub_->StreamingInputCall(&call, &response);
  for (int size : kRequestSizes) {
    StreamingInputCallRequest request;
    *request.mutable_payload() = ZeroPayload(size);
    EXPECT_TRUE(writer->Write(request));
  }
  EXPECT_TRUE(writer->WritesDone());
  grpc::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.aggregated_payload_size(), 74922);
  ExpectTraffic(4, 1);
}

// gRPC's case server_streaming.
TEST_P(InteropTest, StreamOfResponsesComesInOrder) {
  Call call;
  StreamingOutputCallRequest request;
  for (int size : kResponseSizes) {
    request.add_response_parameters()->set_size(size);
  }
  auto reader = stub_->StreamingOutputCall(&call, request);
  StreamingOutputCallResponse response;
  for (int size : kResponseSizes) {
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.payload().body(), std::string(size, '\0'));
  }
  EXPECT_FALSE(reader->Read(&response));
  grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectTraffic(1, 4);
}

// gRPC's case ping_pong.
TEST_P(InteropTest, RequestsAndResponsesTakeTurns) {
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  StreamingOutputCallResponse response;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(stream->Write(RequestOf(kResponseSizes[i], kRequestSizes[i])));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.payload().body().size(), size_t(kResponseSizes[i]));
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&response));
  grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectTraffic(4, 4);
}

// gRPC's case empty_stream.
TEST_P(InteropTest, StreamWithoutMessagesEndsWell) {
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectTraffic(0, 0);
}

INSTANTIATE_TEST_SUITE_P(Over, InteropTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
