#include "ps/service/attend.h"

#include "absl/types/optional.h"
#include "ps/service/convert.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

class AttendReactor final : public grpc::ServerReadReactor<v1::Heartbeat> {
 public:
  AttendReactor(Server* server, const absl::Status& allowed) : server_(server) {
    if (allowed.ok()) {
      StartRead(&heartbeat_);
    } else {
      Finish(tensor::ToGrpc(allowed));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    const WorkerId worker = WorkerIn(heartbeat_.worker());
    if (heartbeat_.leaving()) {
      server_->Leave(worker);
      member_.reset();
      return End(absl::OkStatus());
    }
    absl::Status alive = server_->Heartbeat(heartbeat_.run(), worker);
    if (!alive.ok()) return End(alive);
    member_ = worker;
    StartRead(&heartbeat_);
  }

  void OnDone() override { delete this; }

 private:
  void End(const absl::Status& status) {
    // If a stream ends without a good-bye, its worker counts as dead.
    if (member_.has_value()) server_->Lost(*member_);
    Finish(tensor::ToGrpc(status));
  }

  Server* const server_;
  v1::Heartbeat heartbeat_;
  absl::optional<WorkerId> member_;
};

}  // namespace

grpc::ServerReadReactor<v1::Heartbeat>* ServeAttend(
    Server* server, const absl::Status& allowed) {
  return new AttendReactor(server, allowed);
}

}  // namespace penstock::ps
