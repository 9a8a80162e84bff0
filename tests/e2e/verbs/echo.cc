#include "tests/e2e/verbs/echo.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/client_context.h"

namespace penstock::e2e {
namespace {

// Returns the next state of the generator of bytes. Multiplies, so that one
// step gives 8 bytes: the virtual machine is too slow for a step per byte.
uint64_t Next(uint64_t state) {
  return state * 6364136223846793005u + 1442695040888963407u;
}

}  // namespace

Payload NumberedPayload(uint32_t number, size_t size) {
  Payload payload;
  std::string* body = payload.mutable_body();
  body->resize(size);
  uint64_t state = Next(number);
  for (size_t at = 0; at < size; at += sizeof state) {
    state = Next(state);
    std::memcpy(&(*body)[at], &state, std::min(sizeof state, size - at));
  }
  return payload;
}

bool IsNumbered(const Payload& payload, uint32_t number, size_t size) {
  return payload.body() == NumberedPayload(number, size).body();
}

grpc::Status EchoService::EmptyCall(grpc::ServerContext* context,
                                    const Empty* request, Empty* response) {
  if (context->client_metadata().count(kDie) > 0) raise(SIGKILL);
  return grpc::Status::OK;
}

grpc::Status EchoService::UnaryCall(grpc::ServerContext* context,
                                    const SimpleRequest* request,
                                    SimpleResponse* response) {
  *response->mutable_payload() = request->payload();
  return grpc::Status::OK;
}

grpc::Status EchoService::FullDuplexCall(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<StreamingOutputCallResponse,
                             StreamingOutputCallRequest>* stream) {
  StreamingOutputCallRequest request;
  while (stream->Read(&request)) {
    StreamingOutputCallResponse response;
    *response.mutable_payload() = std::move(*request.mutable_payload());
    if (!stream->Write(response)) break;
  }
  return grpc::Status::OK;
}

grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return arguments;
}

grpc::Status Echo(TestService::Stub* stub, uint32_t number, size_t size,
                  int deadline_s) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(deadline_s));
  SimpleRequest request;
  *request.mutable_payload() = NumberedPayload(number, size);
  SimpleResponse response;
  const grpc::Status status = stub->UnaryCall(&context, request, &response);
  if (status.ok() && !IsNumbered(response.payload(), number, size)) {
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "another message");
  }
  return status;
}

}  // namespace penstock::e2e
