// Calls of the interoperability service.

#ifndef PENSTOCK_TESTS_E2E_CALL_H_
#define PENSTOCK_TESTS_E2E_CALL_H_

#include <chrono>
#include <cstddef>

#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/e2e/test_service.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// The timeout after which a call counts as hung. Longer with tsan, which slows
// down everything, including gRPC, ten times.
#if defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds kPatience(100);
#else
constexpr std::chrono::seconds kPatience(10);
#endif

inline std::chrono::system_clock::time_point In(
    std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

// The context of a call, with a deadline of kPatience.
struct Call : public grpc::ClientContext {
  Call() { set_deadline(In(kPatience)); }
};

using Stream = grpc::ClientReaderWriter<StreamingOutputCallRequest,
                                        StreamingOutputCallResponse>;

// Makes a request of FullDuplexCall for one response of `response_size`.
inline StreamingOutputCallRequest RequestOf(size_t response_size,
                                            size_t payload_size) {
  StreamingOutputCallRequest request;
  request.add_response_parameters()->set_size(response_size);
  *request.mutable_payload() = ZeroPayload(payload_size);
  return request;
}

// Sends a request by RequestOf(), and receives its response.
inline bool PingPong(Stream* stream, size_t bytes = 8) {
  StreamingOutputCallResponse response;
  return stream->Write(RequestOf(bytes, bytes)) && stream->Read(&response) &&
         response.payload().body().size() == bytes;
}

inline grpc::Status MakeEmptyCall(TestService::Stub* stub) {
  Call call;
  Empty response;
  return stub->EmptyCall(&call, Empty(), &response);
}

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CALL_H_
