#include "ps/service/checkpoint_calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/consistency/cut.h"
#include "ps/service/convert.h"
#include "tensor_service/status.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

absl::Status NoFolder() {
  return absl::FailedPreconditionError(
      "checkpoint: this server has no folder for them: start all servers with "
      "--checkpoints=DIR, of a folder that their hosts share");
}

v1::CheckpointAttempt ToMessage(const CheckpointWriter::Attempt& attempt) {
  v1::CheckpointAttempt message;
  message.set_step(attempt.step);
  message.set_id(attempt.id);
  message.set_incremental(attempt.base_step.has_value());
  message.set_base_step(attempt.base_step.value_or(0));
  return message;
}

CheckpointWriter::Attempt AttemptIn(const v1::View& view,
                                    const v1::CheckpointAttempt& message) {
  CheckpointWriter::Attempt attempt;
  attempt.view = ViewIn(view);
  attempt.step = message.step();
  attempt.id = message.id();
  if (message.incremental()) attempt.base_step = message.base_step();
  return attempt;
}

v1::ShardInfo ToMessage(const CheckpointWriter::Shard& shard) {
  v1::ShardInfo message;
  message.set_shard(shard.info.shard);
  message.set_bytes(shard.info.bytes);
  message.set_checksum(shard.info.checksum);
  if (shard.cut.version.has_value()) message.set_version(*shard.cut.version);
  message.set_floor(shard.cut.floor.value_or(0));
  for (const checkpoint::WorkerClock& clock : shard.cut.clocks) {
    v1::WorkerClock* const added = message.add_clocks();
    added->mutable_worker()->set_rank(clock.rank);
    added->mutable_worker()->set_incarnation(clock.incarnation);
    added->set_clock(clock.clock);
  }
  return message;
}

template <typename Clocks>
CheckpointWriter::Clocks ClocksIn(const Clocks& messages) {
  CheckpointWriter::Clocks clocks;
  clocks.reserve(static_cast<size_t>(messages.size()));
  for (const v1::WorkerClock& clock : messages) {
    clocks.push_back(
        {clock.worker().rank(), clock.worker().incarnation(), clock.clock()});
  }
  return clocks;
}

CutPoint CutIn(const v1::CutPoint& message) {
  CutPoint cut;
  if (message.has_version()) cut.version = message.version();
  for (const v1::WorkerClock& clock : message.clocks()) {
    cut.clocks.push_back(
        {{clock.worker().rank(), clock.worker().incarnation()}, clock.clock()});
  }
  return cut;
}

CheckpointWriter::Shard ShardIn(const v1::ShardInfo& message) {
  CheckpointWriter::Shard shard;
  shard.info = {message.shard(), message.bytes(), message.checksum()};
  shard.cut.clocks = ClocksIn(message.clocks());
  if (message.has_version()) shard.cut.version = message.version();
  shard.cut.floor = message.floor();
  return shard;
}

absl::Status ToReply(const absl::StatusOr<HeldSteps>& held,
                     v1::HoldStepsReply* reply) {
  if (!held.ok()) return held.status();
  reply->set_version(held->version);
  for (const RankClock& begun : held->begun) {
    v1::WorkerClock* const added = reply->add_begun();
    added->mutable_worker()->set_rank(begun.worker.rank);
    added->set_clock(begun.clock);
  }
  return absl::OkStatus();
}

}  // namespace

// The reactor of one call. Finish() may run before gRPC has the reactor; gRPC
// then delays the status.
class CheckpointCalls::Call final : public grpc::ServerUnaryReactor {
 public:
  explicit Call(Work work) : work_(std::move(work)) {}

  // Runs the work and ends the call. May delete this object: do not use the
  // call afterwards.
  void Run() {
    const absl::Status status =
        cancellation_.is_cancelled()
            ? absl::CancelledError("the caller has cancelled")
            : work_(&cancellation_);
    Finish(tensor::ToGrpc(status));
  }

  void OnCancel() override { cancellation_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  const Work work_;
  Cancellation cancellation_;
};

CheckpointCalls::~CheckpointCalls() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

grpc::ServerUnaryReactor* CheckpointCalls::Start(Work work) {
  auto* const call = new Call(std::move(work));
  Enqueue(call);
  return call;
}

grpc::ServerUnaryReactor* CheckpointCalls::Start(
    std::shared_ptr<CheckpointWriter> writer, WriterWork work) {
  return Start([writer = std::move(writer),
                work = std::move(work)](Cancellation* cancellation) {
    return work(writer.get(), cancellation);
  });
}

void CheckpointCalls::Enqueue(Call* call) {
  absl::MutexLock lock(&mu_);
  calls_.push_back(call);
  if (!thread_.joinable()) thread_ = std::thread([this] { ThreadLoop(); });
}

void CheckpointCalls::ThreadLoop() {
  while (true) {
    Call* call = nullptr;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &CheckpointCalls::HasWorkLocked));
      if (calls_.empty()) return;
      call = calls_.front();
      calls_.pop_front();
    }
    call->Run();
  }
}

CheckpointCalls& CheckpointCallsOfShards::Of(absl::optional<uint32_t> shard) {
  absl::MutexLock lock(&mu_);
  return calls_[shard];
}

absl::Status BeginCheckpoint(CheckpointWriter* writer,
                             const v1::BeginCheckpointRequest& request,
                             Cancellation* cancellation,
                             v1::CheckpointAttempt* reply) {
  if (writer == nullptr) return NoFolder();
  CheckpointRequest wanted;
  wanted.view = ViewIn(request.view());
  wanted.incremental = request.incremental();
  wanted.keep = request.keep();
  wanted.clocks = ClocksIn(request.clocks());
  wanted.has_waited = request.has_waited();
  const auto begun = writer->Begin(wanted);
  if (!begun.ok()) return begun.status();
  using State = CheckpointWriter::Begun::State;
  if (begun->state == State::kBegun && cancellation->is_cancelled()) {
    writer->GiveUp(begun->attempt);
  }
  *reply = ToMessage(begun->attempt);
  reply->set_running(begun->state == State::kRunning);
  reply->set_committed(begun->state == State::kCommitted);
  reply->set_bytes(begun->bytes);
  return absl::OkStatus();
}

absl::Status AttendCheckpoint(CheckpointWriter* writer,
                              const v1::AttendCheckpointRequest& request) {
  if (writer == nullptr) return NoFolder();
  const CheckpointWriter::Attempt attempt =
      AttemptIn(request.view(), request.attempt());
  if (!request.give_up()) return writer->Renew(attempt);
  writer->GiveUp(attempt);
  return absl::OkStatus();
}

void EndTurn(CheckpointWriter* writer,
             const v1::AttendCheckpointRequest& request) {
  if (writer == nullptr) return;
  if (!request.failure().empty()) {
    writer->RecordFailure(request.failure());
  }
  writer->EndTurn(AttemptIn(request.view(), request.attempt()));
}

absl::Status HoldSteps(Server* server, const v1::HoldStepsRequest& request,
                       v1::HoldStepsReply* reply) {
  if (request.release()) {
    server->ReleaseSteps(ViewIn(request.view()));
    return absl::OkStatus();
  }
  return ToReply(server->HoldSteps(ViewIn(request.view())), reply);
}

absl::Status HoldSteps(ShardCuts* cuts, const v1::HoldStepsRequest& request,
                       v1::HoldStepsReply* reply) {
  if (request.release()) {
    cuts->ReleaseSteps();
    return absl::OkStatus();
  }
  return ToReply(cuts->HoldSteps(ViewIn(request.view())), reply);
}

absl::Status WriteShard(CheckpointWriter* writer,
                        const v1::WriteShardRequest& request,
                        Cancellation* cancellation, v1::ShardInfo* reply) {
  if (writer == nullptr) return NoFolder();
  const auto shard = writer->Write(AttemptIn(request.view(), request.attempt()),
                                   CutIn(request.cut()), cancellation);
  if (!shard.ok()) return shard.status();
  *reply = ToMessage(*shard);
  return absl::OkStatus();
}

absl::Status CommitCheckpoint(CheckpointWriter* writer,
                              const v1::CommitCheckpointRequest& request,
                              v1::CommitCheckpointReply* reply) {
  if (writer == nullptr) return NoFolder();
  std::vector<CheckpointWriter::Shard> shards;
  shards.reserve(static_cast<size_t>(request.shards_size()));
  for (const v1::ShardInfo& shard : request.shards()) {
    shards.push_back(ShardIn(shard));
  }
  const auto removed =
      writer->Commit(AttemptIn(request.view(), request.attempt()), shards);
  if (!removed.ok()) return removed.status();
  for (const uint64_t step : *removed) reply->add_removed_steps(step);
  ServerReport report;
  writer->health().Report(base::SteadyNow(), &report);
  reply->set_checkpoints(report.checkpoints);
  reply->set_checkpoints_bytes(report.checkpoints_bytes);
  return absl::OkStatus();
}

}  // namespace penstock::ps
