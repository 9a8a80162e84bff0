// The client's side: a peer's worker, which receives tensors over the data
// plane.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_REMOTE_WORKER_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_REMOTE_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "frameworks/tensorflow/route.h"
#include "tensorflow/core/distributed_runtime/worker_interface.h"

namespace penstock {
namespace tensorflow {

// Receives tensors and the buffers of collectives over the route, and runs
// graphs there. Delegates all other calls to `stock`. Thread-safe, like all
// workers.
class RemoteWorker final : public ::tensorflow::WorkerInterface {
 public:
  // Makes the worker of the peer `task`, a name for errors.
  RemoteWorker(std::string task,
               std::shared_ptr<::tensorflow::WorkerInterface> stock,
               std::shared_ptr<Route> route)
      : task_(std::move(task)),
        stock_(std::move(stock)),
        route_(std::move(route)) {}
  ~RemoteWorker() override = default;

  void RecvTensorAsync(::tensorflow::CallOptions* options,
                       const ::tensorflow::RecvTensorRequest* request,
                       ::tensorflow::TensorResponse* response,
                       ::tensorflow::StatusCallback done) override;
  void RecvBufAsync(::tensorflow::CallOptions* options,
                    const ::tensorflow::RecvBufRequest* request,
                    ::tensorflow::RecvBufResponse* response,
                    ::tensorflow::StatusCallback done) override;
  void RunGraphAsync(::tensorflow::CallOptions* options,
                     ::tensorflow::RunGraphRequestWrapper* request,
                     ::tensorflow::MutableRunGraphResponseWrapper* response,
                     ::tensorflow::StatusCallback done) override;
  // Sends a call that has no stock RPC. Keep this worker until `answered` was
  // called. `answered` gets FAILED_PRECONDITION if the peer has no data plane.
  void Ask(rpc::Request request,
           std::function<void(absl::StatusOr<rpc::Response>)> answered);
  // Cleans up like the stock worker, but ends within a second if the peer is
  // gone. The stock call waits until the peer returns, and so would block the
  // caller that closes the session.
  void CleanupGraphAsync(const ::tensorflow::CleanupGraphRequest* request,
                         ::tensorflow::CleanupGraphResponse* response,
                         ::tensorflow::StatusCallback done) override;

  // The calls below go to the stock worker.
  void GetStatusAsync(::tensorflow::CallOptions* options,
                      const ::tensorflow::GetStatusRequest* request,
                      ::tensorflow::GetStatusResponse* response, bool fail_fast,
                      ::tensorflow::StatusCallback done) override {
    stock_->GetStatusAsync(options, request, response, fail_fast,
                           std::move(done));
  }
  void CreateWorkerSessionAsync(
      const ::tensorflow::CreateWorkerSessionRequest* request,
      ::tensorflow::CreateWorkerSessionResponse* response,
      ::tensorflow::StatusCallback done) override {
    stock_->CreateWorkerSessionAsync(request, response, std::move(done));
  }
  void DeleteWorkerSessionAsync(
      ::tensorflow::CallOptions* options,
      const ::tensorflow::DeleteWorkerSessionRequest* request,
      ::tensorflow::DeleteWorkerSessionResponse* response,
      ::tensorflow::StatusCallback done) override {
    stock_->DeleteWorkerSessionAsync(options, request, response,
                                     std::move(done));
  }
  void RegisterGraphAsync(const ::tensorflow::RegisterGraphRequest* request,
                          ::tensorflow::RegisterGraphResponse* response,
                          ::tensorflow::StatusCallback done) override {
    stock_->RegisterGraphAsync(request, response, std::move(done));
  }
  void DeregisterGraphAsync(const ::tensorflow::DeregisterGraphRequest* request,
                            ::tensorflow::DeregisterGraphResponse* response,
                            ::tensorflow::StatusCallback done) override {
    stock_->DeregisterGraphAsync(request, response, std::move(done));
  }
  ::tensorflow::MutableRunGraphRequestWrapper* CreateRunGraphRequest()
      override {
    return stock_->CreateRunGraphRequest();
  }
  ::tensorflow::MutableRunGraphResponseWrapper* CreateRunGraphResponse()
      override {
    return stock_->CreateRunGraphResponse();
  }
  void CleanupAllAsync(const ::tensorflow::CleanupAllRequest* request,
                       ::tensorflow::CleanupAllResponse* response,
                       ::tensorflow::StatusCallback done) override {
    stock_->CleanupAllAsync(request, response, std::move(done));
  }
  void LoggingAsync(const ::tensorflow::LoggingRequest* request,
                    ::tensorflow::LoggingResponse* response,
                    ::tensorflow::StatusCallback done) override {
    stock_->LoggingAsync(request, response, std::move(done));
  }
  void TracingAsync(const ::tensorflow::TracingRequest* request,
                    ::tensorflow::TracingResponse* response,
                    ::tensorflow::StatusCallback done) override {
    stock_->TracingAsync(request, response, std::move(done));
  }
  void CompleteGroupAsync(::tensorflow::CallOptions* options,
                          const ::tensorflow::CompleteGroupRequest* request,
                          ::tensorflow::CompleteGroupResponse* response,
                          ::tensorflow::StatusCallback done) override {
    stock_->CompleteGroupAsync(options, request, response, std::move(done));
  }
  void CompleteInstanceAsync(
      ::tensorflow::CallOptions* options,
      const ::tensorflow::CompleteInstanceRequest* request,
      ::tensorflow::CompleteInstanceResponse* response,
      ::tensorflow::StatusCallback done) override {
    stock_->CompleteInstanceAsync(options, request, response, std::move(done));
  }
  void GetStepSequenceAsync(const ::tensorflow::GetStepSequenceRequest* request,
                            ::tensorflow::GetStepSequenceResponse* response,
                            ::tensorflow::StatusCallback done) override {
    stock_->GetStepSequenceAsync(request, response, std::move(done));
  }

 private:
  const std::string task_;
  const std::shared_ptr<::tensorflow::WorkerInterface> stock_;
  const std::shared_ptr<Route> route_;
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_REMOTE_WORKER_H_
