#include "tests/e2e/test_service.h"

#include <chrono>
#include <string>

#include "grpc/impl/codegen/compression_types.h"
#include "tests/e2e/compression.h"

namespace penstock::e2e {
namespace {

void EchoMetadata(grpc::ServerContext* context) {
  const auto& received = context->client_metadata();
  auto initial = received.find(kEchoInitial);
  if (initial != received.end()) {
    context->AddInitialMetadata(
        kEchoInitial,
        std::string(initial->second.data(), initial->second.size()));
  }
  auto trailing = received.find(kEchoTrailing);
  if (trailing != received.end()) {
    context->AddTrailingMetadata(
        kEchoTrailing,
        std::string(trailing->second.data(), trailing->second.size()));
  }
}

template <typename Request>
grpc::Status StatusFor(const Request& request) {
  if (!request.has_response_status()) return grpc::Status::OK;
  return grpc::Status(
      static_cast<grpc::StatusCode>(request.response_status().code()),
      request.response_status().message());
}

}  // namespace

Payload ZeroPayload(size_t size) {
  Payload payload;
  payload.mutable_body()->resize(size);
  return payload;
}

grpc::Status TestServiceImpl::EmptyCall(grpc::ServerContext* context,
                                        const Empty* request, Empty* response) {
  EchoMetadata(context);
  return grpc::Status::OK;
}

grpc::Status TestServiceImpl::UnaryCall(grpc::ServerContext* context,
                                        const SimpleRequest* request,
                                        SimpleResponse* response) {
  EchoMetadata(context);
  if (request->has_response_compressed()) {
    context->set_compression_level(request->response_compressed().value()
                                       ? GRPC_COMPRESS_LEVEL_HIGH
                                       : GRPC_COMPRESS_LEVEL_NONE);
  }
  if (request->expect_compressed().value() &&
      !CameCompressed(context->c_call())) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        "the request is not compressed");
  }
  *response->mutable_payload() = ZeroPayload(request->response_size());
  return StatusFor(*request);
}

grpc::Status TestServiceImpl::StreamingOutputCall(
    grpc::ServerContext* context, const StreamingOutputCallRequest* request,
    grpc::ServerWriter<StreamingOutputCallResponse>* writer) {
  for (const ResponseParameters& each : request->response_parameters()) {
    StreamingOutputCallResponse response;
    *response.mutable_payload() = ZeroPayload(each.size());
    if (!writer->Write(response)) break;
  }
  return StatusFor(*request);
}

grpc::Status TestServiceImpl::StreamingInputCall(
    grpc::ServerContext* context,
    grpc::ServerReader<StreamingInputCallRequest>* reader,
    StreamingInputCallResponse* response) {
  NoteBegun();
  StreamingInputCallRequest request;
  int sum = 0;
  while (reader->Read(&request)) sum += request.payload().body().size();
  response->set_aggregated_payload_size(sum);
  NoteEnded(*context);
  return grpc::Status::OK;
}

grpc::Status TestServiceImpl::FullDuplexCall(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<StreamingOutputCallResponse,
                             StreamingOutputCallRequest>* stream) {
  NoteBegun();
  EchoMetadata(context);
  StreamingOutputCallRequest request;
  while (stream->Read(&request)) {
    if (request.has_response_status()) return StatusFor(request);
    for (const ResponseParameters& each : request.response_parameters()) {
      StreamingOutputCallResponse response;
      *response.mutable_payload() = ZeroPayload(each.size());
      stream->Write(response);
    }
  }
  NoteEnded(*context);
  return grpc::Status::OK;
}

bool TestServiceImpl::Await(const int& counter, int count) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, std::chrono::seconds(10),
                           [&] { return counter >= count; });
}

void TestServiceImpl::NoteBegun() {
  std::lock_guard<std::mutex> lock(mu_);
  ++begun_;
  changed_.notify_all();
}

void TestServiceImpl::NoteEnded(const grpc::ServerContext& context) {
  if (!context.IsCancelled()) return;
  std::lock_guard<std::mutex> lock(mu_);
  ++cancelled_;
  changed_.notify_all();
}

}  // namespace penstock::e2e
