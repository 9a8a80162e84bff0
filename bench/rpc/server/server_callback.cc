// The service through gRPC's callback server API.

#include "grpcpp/support/server_callback.h"

#include "bench/rpc/message/payload.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;

// Receives one stream. Deletes itself in OnDone().
class StreamReactor final : public grpc::ServerReadReactor<ByteBuffer> {
 public:
  explicit StreamReactor(ByteBuffer* reply) : reply_(reply) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      *reply_ = tally_.Encode();
      Finish(grpc::Status::OK);
      return;
    }
    const absl::Status status = tally_.Add(message_);
    if (!status.ok()) {
      Finish(ToGrpc(status));
      return;
    }
    StartRead(&message_);
  }

  void OnDone() override { delete this; }

 private:
  ByteBuffer* const reply_;  // owned by gRPC, valid until OnDone
  ByteBuffer message_;
  StreamTally tally_;
};

class CallbackService final : public grpc::Service {
 public:
  CallbackService() {
    using grpc::internal::RpcMethod;
    using grpc::internal::RpcServiceMethod;
    AddMethod(
        new RpcServiceMethod(kEchoMethod, RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRawCallback(
        kEchoIndex,
        new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(Echo));
    AddMethod(new RpcServiceMethod(kStreamMethod, RpcMethod::CLIENT_STREAMING,
                                   nullptr));
    MarkMethodRawCallback(
        kStreamIndex,
        new grpc::internal::CallbackClientStreamingHandler<ByteBuffer,
                                                           ByteBuffer>(
            [](grpc::CallbackServerContext*, ByteBuffer* reply) {
              return new StreamReactor(reply);
            }));
  }

 private:
  static grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context,
                                        const ByteBuffer* request,
                                        ByteBuffer* reply) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::StatusOr<ByteBuffer> answer = Answer(*request);
    if (answer.ok()) reply->Swap(&*answer);
    reactor->Finish(ToGrpc(answer.status()));
    return reactor;
  }
};

class CallbackHost final : public ServiceHost {
 public:
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(&service_);
  }

 private:
  CallbackService service_;
};

}  // namespace

std::unique_ptr<ServiceHost> MakeCallbackHost() {
  return std::make_unique<CallbackHost>();
}

}  // namespace bench
}  // namespace penstock
