// The server's side of the soak test.

#ifndef PENSTOCK_TESTS_SOAK_SERVICE_H_
#define PENSTOCK_TESTS_SOAK_SERVICE_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/soak/soak.grpc.pb.h"

namespace penstock::soak {

// The metadata keys that the service echoes: in the headers, and with the
// status.
constexpr char kEchoInitial[] = "echo-initial";
constexpr char kEchoTrailing[] = "echo-trailing-bin";

// Checks each chunk. Ends a call with DATA_LOSS after a changed chunk.
class SoakService final : public Soak::Service {
 public:
  grpc::Status Unary(grpc::ServerContext* context, const Order* order,
                     Chunk* response) override;
  grpc::Status Upload(grpc::ServerContext* context,
                      grpc::ServerReader<Chunk>* reader,
                      Chunk* response) override;
  grpc::Status Download(grpc::ServerContext* context, const Order* order,
                        grpc::ServerWriter<Chunk>* writer) override;
  grpc::Status Chat(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<Chunk, Order>* stream) override;
  grpc::Status Hold(grpc::ServerContext* context, const Nothing* request,
                    Holdings* response) override;
};

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_SERVICE_H_
