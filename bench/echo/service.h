// A service that returns each message, for benchmarks of the transport alone.

#ifndef PENSTOCK_BENCH_ECHO_SERVICE_H_
#define PENSTOCK_BENCH_ECHO_SERVICE_H_

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::bench {

// Answers a unary call of any method with its request.
class EchoService final : public grpc::CallbackGenericService {
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status(grpc::StatusCode::UNKNOWN, "none"));
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_ECHO_SERVICE_H_
