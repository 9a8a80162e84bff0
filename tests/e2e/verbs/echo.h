// Messages that reveal loss, repetition and changes, and a service that echoes
// them. Used by tests and by other processes.

#ifndef PENSTOCK_TESTS_E2E_VERBS_ECHO_H_
#define PENSTOCK_TESTS_E2E_VERBS_ECHO_H_

#include <cstddef>
#include <cstdint>

#include "grpcpp/channel.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// Returns `size` bytes that depend on `number`.
Payload NumberedPayload(uint32_t number, size_t size);
bool IsNumbered(const Payload& payload, uint32_t number, size_t size);

// A metadata key that makes the process of EchoService die like after `kill
// -9`.
constexpr char kDie[] = "x-die";

// Echoes each payload. Thread-safe, because gRPC calls it on any thread.
class EchoService final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty* request,
                         Empty* response) override;
  grpc::Status UnaryCall(grpc::ServerContext* context,
                         const SimpleRequest* request,
                         SimpleResponse* response) override;
  grpc::Status FullDuplexCall(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<StreamingOutputCallResponse,
                               StreamingOutputCallRequest>* stream) override;
};

// Returns arguments for a channel with its own connections and messages of any
// size.
grpc::ChannelArguments OwnConnection();

// Makes one call with a numbered message. Returns DATA_LOSS if the reply
// differs.
grpc::Status Echo(TestService::Stub* stub, uint32_t number, size_t size,
                  int deadline_s = 30);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_ECHO_H_
