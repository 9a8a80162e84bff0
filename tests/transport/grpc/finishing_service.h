// A service that ends each call with OK once its requests end.

#ifndef PENSTOCK_TESTS_TRANSPORT_GRPC_FINISHING_SERVICE_H_
#define PENSTOCK_TESTS_TRANSPORT_GRPC_FINISHING_SERVICE_H_

#include <atomic>
#include <chrono>
#include <thread>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"

namespace penstock {
namespace core {

// Accepts calls of any method.
class FinishingService final : public grpc::CallbackGenericService {
 public:
  // Waits until the application has `count` calls. A shutdown drops calls that
  // gRPC has not delivered yet.
  void AwaitCalls(int count) const {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (calls_ < count && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_GE(calls_, count);
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&request_); }
    void OnReadDone(bool ok) override {
      if (ok) return StartRead(&request_);
      Finish(grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    ++calls_;
    return new Reactor();
  }

  std::atomic<int> calls_{0};
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_GRPC_FINISHING_SERVICE_H_
