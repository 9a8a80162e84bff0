#include "ps/shards/peers.h"

#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensor_service/calls.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

constexpr char kMethod[] = "/penstock.ps.v1.ParameterServer/Replicate";

class GrpcPeers final : public Peers {
 public:
  using Connect =
      std::function<std::shared_ptr<grpc::Channel>(const std::string& server)>;

  explicit GrpcPeers(Connect connect) : connect_(std::move(connect)) {}
  ~GrpcPeers() override {
    Stop();
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::set<Call*>* calls) { return calls->empty(); }, &calls_));
  }

  void Replicate(const std::string& server, const grpc::ByteBuffer& request,
                 absl::Duration timeout, Callback callback) override {
    auto call = std::make_unique<Call>();
    call->request = request;
    call->context.set_deadline(tensor::DeadlineAfter(timeout));
    grpc::GenericStub* const stub = Begin(server, call.get());
    if (stub == nullptr) {
      return callback(absl::CancelledError("this server is shutting down"));
    }
    Call* const started = call.release();
    stub->UnaryCall(
        &started->context, kMethod, {}, &started->request, &started->reply,
        [this, started, server,
         callback = std::move(callback)](const grpc::Status& status) {
          const std::unique_ptr<Call> done(started);
          absl::StatusOr<grpc::ByteBuffer> result = started->reply;
          if (!status.ok()) {
            result =
                tensor::FromGrpc(status, absl::StrCat("replicate to ", server));
          }
          callback(std::move(result));
          absl::MutexLock lock(&mu_);
          calls_.erase(started);
        });
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    is_stopped_ = true;
    for (Call* call : calls_) call->context.TryCancel();
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };

  // Registers the call. Returns null after Stop().
  grpc::GenericStub* Begin(const std::string& server, Call* call) {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return nullptr;
    std::unique_ptr<grpc::GenericStub>& stub = stubs_[server];
    if (stub == nullptr) {
      stub = std::make_unique<grpc::GenericStub>(connect_(server));
    }
    calls_.insert(call);
    return stub.get();
  }

  const Connect connect_;
  absl::Mutex mu_;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, std::unique_ptr<grpc::GenericStub>> stubs_
      ABSL_GUARDED_BY(mu_);
  std::set<Call*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Peers> PeersOver(
    std::function<std::shared_ptr<grpc::Channel>(const std::string& server)>
        connect) {
  return std::make_unique<GrpcPeers>(std::move(connect));
}

}  // namespace penstock::ps
