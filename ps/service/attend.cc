#include "ps/service/attend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "ps/service/convert.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

class AttendReactor final : public grpc::ServerReadReactor<v1::Heartbeat> {
 public:
  AttendReactor(FindServer find, const Attendance::Shard& shard,
                Attendance* attendance, const absl::Status& allowed)
      : find_(std::move(find)), shard_(shard), attendance_(attendance) {
    if (allowed.ok()) {
      StartRead(&heartbeat_);
    } else {
      Finish(tensor::ToGrpc(allowed));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    const WorkerId worker = WorkerIn(heartbeat_.worker());
    if (member_.has_value() && !IsMember(worker)) {
      return End(absl::InvalidArgumentError(
          absl::StrCat("attend: a heartbeat of worker ", worker.rank,
                       " in the stream of worker ", member_->rank,
                       ": open a stream for each")));
    }
    const auto server = find_();
    if (!server.ok()) return End(server.status());
    if (heartbeat_.leaving()) {
      (*server)->Leave(worker, heartbeat_.run());
      return End(absl::OkStatus());
    }
    absl::Status alive = (*server)->Heartbeat(heartbeat_.run(), worker);
    if (!alive.ok()) return End(alive);
    if (!member_.has_value()) attendance_->Begin(shard_, worker, this);
    member_ = worker;
    run_ = heartbeat_.run();
    StartRead(&heartbeat_);
  }

  void OnDone() override { delete this; }

 private:
  bool IsMember(const WorkerId& worker) const {
    return worker.rank == member_->rank &&
           worker.incarnation == member_->incarnation;
  }

  void End(const absl::Status& status) {
    // Reports the worker as lost, because its newest stream has ended. Lost()
    // ignores a worker that has left.
    if (member_.has_value() && attendance_->End(shard_, *member_, this)) {
      const auto server = find_();
      if (server.ok()) (*server)->Lost(*member_, run_);
    }
    Finish(tensor::ToGrpc(status));
  }

  const FindServer find_;
  const Attendance::Shard shard_;
  Attendance* const attendance_;
  v1::Heartbeat heartbeat_;
  absl::optional<WorkerId> member_;
  uint64_t run_ = 0;  // the run of the member
};

}  // namespace

void Attendance::Begin(const Shard& shard, const WorkerId& worker,
                       const void* stream) {
  absl::MutexLock lock(&mu_);
  streams_[{shard, worker.rank, worker.incarnation}] = stream;
}

bool Attendance::End(const Shard& shard, const WorkerId& worker,
                     const void* stream) {
  absl::MutexLock lock(&mu_);
  const auto newest = streams_.find({shard, worker.rank, worker.incarnation});
  if (newest == streams_.end() || newest->second != stream) return false;
  streams_.erase(newest);
  return true;
}

grpc::ServerReadReactor<v1::Heartbeat>* ServeAttend(
    FindServer find, const Attendance::Shard& shard, Attendance* attendance,
    const absl::Status& allowed) {
  return new AttendReactor(std::move(find), shard, attendance, allowed);
}

}  // namespace penstock::ps
