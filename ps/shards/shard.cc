#include "ps/shards/shard.h"

#include <pthread.h>

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/rounds.h"

namespace penstock::ps {
namespace {

// The pause between two attempts to lock the folder of checkpoints, which the
// former primary may still have.
constexpr absl::Duration kLockPause = absl::Seconds(1);

// Locks the folder of checkpoints for the primary. Tries until this replica is
// no longer the primary of `reign`.
void LockFolder(ReplicaState* state, CheckpointWriter* writer, uint64_t reign) {
  absl::Status why;
  while (true) {
    const absl::Status locked = writer->Lock();
    if (locked.ok()) return;
    base::SteadyMutexLock lock(&state->mu);
    const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mu) {
      return state->reign != reign;
    };
    if (is_over()) return;
    if (std::exchange(why, locked) != locked) {
      state->Say(absl::StrCat("the folder of checkpoints is not locked yet: ",
                              locked.message()));
    }
    if (state->mu.AwaitFor(kLockPause, is_over)) return;
  }
}

}  // namespace

Shard::Shard(const ShardOptions& options, const replication::Group& group,
             const replication::ReplicaId& self,
             const std::shared_ptr<Server>& first, bool leads)
    : own_(first.get()),
      state_(
          std::make_shared<ReplicaState>(options, group, self, first, leads)),
      calls_(std::make_shared<WorkerCalls>(state_)),
      cuts_(std::make_shared<ShardCuts>(state_)),
      log_sender_(std::make_shared<LogSender>(state_)),
      feeder_(std::make_shared<Feeder>(state_, calls_)),
      snapshot_sender_(std::make_shared<SnapshotSender>(state_)),
      snapshot_receiver_(std::make_shared<SnapshotReceiver>(state_)),
      rounds_(std::make_shared<Rounds>(state_, calls_, log_sender_, feeder_,
                                       snapshot_sender_)) {
  state_->rounds = rounds_;
}

Shard::~Shard() { Stop(); }

absl::Status Shard::OnView(const replication::View& view) {
  ReplicaState::Due due;
  bool has_moved = false;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (state_->is_stopped) return Draining();
    StartThreadLocked();
    replication::Replica& replica = state_->replica;
    const bool was_primary = state_->primary() != nullptr;
    const uint64_t before = replica.view();
    absl::Status moved = replica.OnView(view, BootNow());
    has_moved = replica.view() != before;
    if (has_moved) {
      state_->view = view;
      const bool is_primary = state_->primary() != nullptr;
      if (is_primary && !was_primary) BeginReignLocked();
      if (!is_primary && was_primary) EndReignLocked(&due);
    }
    if (!moved.ok()) return moved;
  }
  if (has_moved) snapshot_receiver_->OnView(view);
  for (const auto& each : due) each();
  state_->Pump();
  return absl::OkStatus();
}

void Shard::BeginReignLocked() {
  ++state_->reign;
  state_->inherited = state_->replica.holdings().log.last();
  state_->leases.Clear();
  state_->Say(absl::StrCat("this server leads it in view ", state_->view.number,
                           ", after ", state_->inherited, " entries"));
  if (state_->options.checkpoints == nullptr) return;
  writer_ = MakeWriterLocked();
  if (state_->group.shard == 0) LockFolderLocked();
}

// Locks the folder of checkpoints on a thread, which waits for the disk.
void Shard::LockFolderLocked() {
  ++state_->tracked;
  std::thread([state = state_, writer = writer_,
               reign = state_->reign]() mutable {
    LockFolder(state.get(), writer.get(), reign);
    writer = nullptr;  // Stop() waits for the end of what it owns
    state->EndTracked();
  }).detach();
}

void Shard::EndReignLocked(ReplicaState::Due* due) {
  ++state_->reign;
  const absl::Status refusal = state_->NotPrimary();
  due->push_back([this] { snapshot_sender_->Cancel(); });
  ReleaseFolderLocked();
  for (Tickets::Ticket& each : state_->tickets.TakeAll()) {
    due->push_back(
        [ticket = std::move(each), refusal] { ticket.End(refusal); });
  }
  state_->logged.Clear();
  state_->gate.Clear();
  state_->Say(std::string(refusal.message()));
}

// Unlocks the folder of checkpoints, so that the next primary can lock it. Does
// not wait for the disk.
void Shard::ReleaseFolderLocked() {
  std::shared_ptr<CheckpointWriter> writer = std::move(writer_);
  writer_ = nullptr;
  CheckpointWriter* const claim =
      state_->group.shard == 0 ? state_->options.claim : nullptr;
  if (writer == nullptr && claim == nullptr) return;
  ++state_->tracked;
  std::thread([state = state_, writer = std::move(writer), claim]() mutable {
    if (writer != nullptr) writer->Release();
    if (claim != nullptr) claim->Release();
    writer = nullptr;  // Stop() waits for the end of what it owns
    state->EndTracked();
  }).detach();
}

absl::optional<replication::ViewFollower::Request> Shard::Requests() {
  base::SteadyMutexLock lock(&state_->mu);
  replication::Primary* const leads = state_->primary();
  if (leads == nullptr) return absl::nullopt;
  replication::ViewFollower::Request request;
  request.shard = state_->group.shard;
  request.view = state_->view.number;
  request.has_begun = leads->has_begun();
  request.complete = leads->Complete();
  request.overdue = leads->Overdue(BootNow());
  if (state_->LeavesToBackup()) {
    request.overdue.push_back(
        {state_->self, std::string(state_->failure.message())});
  }
  return request;
}

void Shard::Handle(ReplicateMessage message,
                   SnapshotReceiver::AnswerCallback callback) {
  if (message.restore.has_value()) {
    return snapshot_receiver_->StartRestore(std::move(message),
                                            std::move(callback));
  }
  if (message.snapshot.has_value()) {
    return callback(snapshot_receiver_->TakeSnapshot(message));
  }
  callback(message.piece.has_value() ? snapshot_receiver_->TakePiece(message)
                                     : TakeAppend(message));
}

absl::StatusOr<replication::Answer> Shard::TakeAppend(
    const ReplicateMessage& message) {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->is_stopped) return Draining();
  // Returns an error instead of an answer, so that the primary drops this
  // replica.
  if (!state_->failure.ok()) return state_->failure;
  replication::Backup* const backup = state_->replica.backup();
  if (backup != nullptr) return backup->OnAppend(*message.append, BootNow());
  absl::Status wrong = state_->CheckFromPrimary(message.envelope);
  if (wrong.ok()) wrong = absl::FailedPreconditionError("no backup");
  return state_->PlainAnswer(std::move(wrong));
}

absl::StatusOr<std::shared_ptr<Server>> Shard::PrimaryServer() {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->primary() == nullptr) return state_->NotPrimary();
  return state_->server;
}

std::shared_ptr<Server> Shard::server() {
  base::SteadyMutexLock lock(&state_->mu);
  return state_->server;
}

absl::StatusOr<std::shared_ptr<CheckpointWriter>> Shard::Writer() {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->primary() == nullptr) return state_->NotPrimary();
  return writer_;
}

std::shared_ptr<CheckpointWriter> Shard::MakeWriterLocked() {
  CheckpointWriter::Options options;
  options.commits.continues_run = true;
  if (state_->group.shard == 0 && state_->options.claim != nullptr) {
    options.commits.holder = state_->options.claim->commits();
  }
  options.take_snapshot =
      [cuts = cuts_](
          const View& view, const absl::optional<CutPoint>& cut,
          const SparseSnapshotOptions& rows, absl::Duration timeout,
          Cancellation* cancellation) -> absl::StatusOr<ModelSnapshot> {
    if (!cut.has_value()) {
      return absl::InvalidArgumentError("checkpoint: there is no cut");
    }
    return cuts->TakeSnapshot(view, *cut, rows, timeout, cancellation);
  };
  struct WriterOfServer {
    std::shared_ptr<Server> server;
    CheckpointWriter writer;
  };
  auto made = std::shared_ptr<WriterOfServer>(new WriterOfServer{
      state_->server,
      {state_->options.checkpoints, state_->server.get(), std::move(options)}});
  return std::shared_ptr<CheckpointWriter>(made, &made->writer);
}

void Shard::StartThreadLocked() {
  if (is_pumping_) return;
  is_pumping_ = true;
  std::thread([self = shared_from_this()] { self->PumpLoop(); }).detach();
}

void Shard::PumpLoop() {
  pthread_setname_np(pthread_self(), "penstock-shard");
  while (rounds_->AwaitOne()) continue;
  base::SteadyMutexLock lock(&state_->mu);
  is_pumping_ = false;
}

void Shard::Stop() {
  ReplicaState::Due due;
  std::shared_ptr<Server> server;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (state_->is_stopped) return;
    EndReignLocked(&due);
    state_->is_stopped = true;
    server = state_->server;
  }
  for (const auto& each : due) each();
  if (server != nullptr && server.get() != own_) server->Drain();
  base::SteadyMutexLock lock(&state_->mu);
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    return state_->tracked == 0 && !is_pumping_;
  };
  state_->mu.Await(is_over);
  state_->server = nullptr;
}

}  // namespace penstock::ps
