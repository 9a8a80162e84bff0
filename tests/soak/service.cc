#include "tests/soak/service.h"

#include <string>

#include "tests/soak/chunk.h"
#include "tests/soak/holdings.h"

namespace penstock::soak {
namespace {

const grpc::Status kChanged(grpc::StatusCode::DATA_LOSS,
                            "a chunk differs from its sum");

std::string Find(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return std::string();
  return std::string(found->second.data(), found->second.size());
}

void EchoMetadata(grpc::ServerContext* context) {
  const std::string initial = Find(*context, kEchoInitial);
  if (!initial.empty()) context->AddInitialMetadata(kEchoInitial, initial);
  const std::string trailing = Find(*context, kEchoTrailing);
  if (!trailing.empty()) context->AddTrailingMetadata(kEchoTrailing, trailing);
}

grpc::Status StatusOf(const Order& order) {
  return grpc::Status(static_cast<grpc::StatusCode>(order.code()),
                      order.message());
}

}  // namespace

grpc::Status SoakService::Unary(grpc::ServerContext* context,
                                const Order* order, Chunk* response) {
  EchoMetadata(context);
  if (!IsIntact(order->chunk())) return kChanged;
  Fill(order->response_bytes(), order->chunk().sum(), response);
  return StatusOf(*order);
}

grpc::Status SoakService::Upload(grpc::ServerContext* context,
                                 grpc::ServerReader<Chunk>* reader,
                                 Chunk* response) {
  EchoMetadata(context);
  Chunk chunk;
  uint64_t sum = 0;
  while (reader->Read(&chunk)) {
    if (!IsIntact(chunk)) return kChanged;
    sum += chunk.sum();
  }
  response->set_sum(sum);
  return grpc::Status::OK;
}

grpc::Status SoakService::Download(grpc::ServerContext* context,
                                   const Order* order,
                                   grpc::ServerWriter<Chunk>* writer) {
  EchoMetadata(context);
  if (!IsIntact(order->chunk())) return kChanged;
  Chunk chunk;
  for (uint32_t i = 0; i < order->responses(); ++i) {
    Fill(order->response_bytes(), order->chunk().sum(), &chunk);
    if (!writer->Write(chunk)) break;
  }
  return StatusOf(*order);
}

grpc::Status SoakService::Chat(grpc::ServerContext* context,
                               grpc::ServerReaderWriter<Chunk, Order>* stream) {
  EchoMetadata(context);
  Order order;
  Chunk chunk;
  while (stream->Read(&order)) {
    if (!IsIntact(order.chunk())) return kChanged;
    if (order.code() != grpc::StatusCode::OK) return StatusOf(order);
    Fill(order.response_bytes(), order.chunk().sum(), &chunk);
    if (!stream->Write(chunk)) break;
  }
  return grpc::Status::OK;
}

grpc::Status SoakService::Hold(grpc::ServerContext*, const Nothing*,
                               Holdings* response) {
  *response = MeasureSelf();
  return grpc::Status::OK;
}

}  // namespace penstock::soak
