// A service whose methods the test defines.

#ifndef PENSTOCK_TESTS_E2E_SCRIPTED_SERVICE_H_
#define PENSTOCK_TESTS_E2E_SCRIPTED_SERVICE_H_

#include <functional>

#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

using ServerStream = grpc::ServerReaderWriter<StreamingOutputCallResponse,
                                              StreamingOutputCallRequest>;

// A service that runs scripts of the test. Set the scripts before the server
// starts. They must be thread-safe if calls are concurrent.
struct ScriptedService final : public TestService::Service {
  std::function<grpc::Status(grpc::ServerContext*)> empty;
  std::function<grpc::Status(grpc::ServerContext*, const SimpleRequest&,
                             SimpleResponse*)>
      unary;
  std::function<grpc::Status(grpc::ServerContext*, ServerStream*)> duplex;

  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty*,
                         Empty*) override {
    return empty ? empty(context) : grpc::Status::OK;
  }
  grpc::Status UnaryCall(grpc::ServerContext* context,
                         const SimpleRequest* request,
                         SimpleResponse* response) override {
    return unary(context, *request, response);
  }
  grpc::Status FullDuplexCall(grpc::ServerContext* context,
                              ServerStream* stream) override {
    return duplex(context, stream);
  }
};

// Reads until the client has half-closed, or the call has ended. Returns the
// number of messages.
inline int ReadAll(ServerStream* stream) {
  StreamingOutputCallRequest request;
  int count = 0;
  while (stream->Read(&request)) ++count;
  return count;
}

inline StreamingOutputCallResponse ResponseOf(size_t size) {
  StreamingOutputCallResponse response;
  response.mutable_payload()->mutable_body()->resize(size);
  return response;
}

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SCRIPTED_SERVICE_H_
