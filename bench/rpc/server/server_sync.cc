// The service through gRPC's blocking server API.

#include <utility>

#include "bench/rpc/message/payload.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "grpcpp/support/sync_stream.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;

class SyncService final : public grpc::Service {
 public:
  SyncService() {
    using grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kEchoMethod, RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<SyncService, ByteBuffer,
                                             ByteBuffer>(Echo, this)));
    AddMethod(new grpc::internal::RpcServiceMethod(
        kStreamMethod, RpcMethod::CLIENT_STREAMING,
        new grpc::internal::ClientStreamingHandler<SyncService, ByteBuffer,
                                                   ByteBuffer>(Stream, this)));
  }

 private:
  static grpc::Status Echo(SyncService*, grpc::ServerContext*,
                           const ByteBuffer* request, ByteBuffer* reply) {
    absl::StatusOr<ByteBuffer> answer = Answer(*request);
    if (!answer.ok()) return ToGrpc(answer.status());
    reply->Swap(&*answer);
    return grpc::Status::OK;
  }

  static grpc::Status Stream(SyncService*, grpc::ServerContext*,
                             grpc::ServerReader<ByteBuffer>* reader,
                             ByteBuffer* reply) {
    StreamTally tally;
    ByteBuffer message;
    while (reader->Read(&message)) {
      const absl::Status status = tally.Add(message);
      if (!status.ok()) return ToGrpc(status);
    }
    *reply = tally.Encode();
    return grpc::Status::OK;
  }
};

class SyncHost final : public ServiceHost {
 public:
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(&service_);
  }

 private:
  SyncService service_;
};

}  // namespace

std::unique_ptr<ServiceHost> MakeSyncHost() {
  return std::make_unique<SyncHost>();
}

}  // namespace bench
}  // namespace penstock
