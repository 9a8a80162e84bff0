// Messages that show whether they were lost, repeated or changed on their way,
// and a service that sends them back. For the test and for processes beside it.

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

// Returns `size` bytes, which differ for each `number`.
Payload NumberedPayload(uint32_t number, size_t size);
bool IsNumbered(const Payload& payload, uint32_t number, size_t size);

// Metadata that makes the process of EchoService end, as `kill -9` would.
constexpr char kDie[] = "x-die";

// Sends back each payload. Thread-safe, since gRPC calls it on any thread.
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

// Returns arguments of a channel with connections of its own and messages of
// any size.
grpc::ChannelArguments OwnConnection();

// Makes one call of a numbered message. Returns DATA_LOSS if another message
// comes back.
grpc::Status Echo(TestService::Stub* stub, uint32_t number, size_t size,
                  int deadline_s = 30);

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_ECHO_H_
