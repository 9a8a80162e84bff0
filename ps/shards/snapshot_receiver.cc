#include "ps/shards/snapshot_receiver.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/snapshot.h"

namespace penstock::ps {

using replication::Answer;

SnapshotReceiver::SnapshotReceiver(std::shared_ptr<ReplicaState> state)
    : state_(std::move(state)) {}

void SnapshotReceiver::OnView(const replication::View& view) {
  Incoming former;  // freed without the lock
  const replication::ShardReplicas& shard = view.shards[state_->group.shard];
  const bool joins = std::find(shard.joiners.begin(), shard.joiners.end(),
                               state_->self) != shard.joiners.end();
  base::SteadyMutexLock lock(&state_->mu);
  if (joins && shard.primary == incoming_.from) return;
  std::swap(former, incoming_);
}

// Does not check the order of the pieces, because the primary waits for each
// answer.
absl::StatusOr<Answer> SnapshotReceiver::TakePiece(
    const ReplicateMessage& message) {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->is_stopped) return Draining();
  absl::Status wrong = state_->CheckFromPrimary(message.envelope);
  if (!wrong.ok()) return state_->PlainAnswer(std::move(wrong));
  const SnapshotPiece& piece = *message.piece;
  if (piece.offset == 0) {
    // Refuses a second restore while one is running, because both would need
    // memory for a model.
    if (is_restoring_) {
      return state_->PlainAnswer(absl::UnavailableError(
          "an earlier snapshot is still being restored"));
    }
    incoming_ = {};
    incoming_.id = piece.id;
    incoming_.from = message.envelope.from;
  }
  if (piece.id != incoming_.id || piece.offset != incoming_.bytes) {
    return state_->PlainAnswer(absl::OutOfRangeError(
        absl::StrCat("the piece begins at ", piece.offset, " of the snapshot, ",
                     "and this server has ", incoming_.bytes, " bytes")));
  }
  const size_t limit = state_->options.max_snapshot_bytes;
  if (incoming_.bytes + piece.bytes.byte_size() > limit) {
    incoming_ = {};
    return state_->PlainAnswer(absl::ResourceExhaustedError(
        absl::StrCat("the snapshot takes more than ", limit,
                     " bytes: give all servers the same limits of memory")));
  }
  incoming_.bytes += piece.bytes.byte_size();
  incoming_.pieces.push_back(piece.bytes);
  return state_->PlainAnswer(absl::OkStatus());
}

absl::Status SnapshotReceiver::CheckRestoreLocked(
    const ReplicateMessage& message) const {
  if (state_->is_stopped) return Draining();
  absl::Status wrong = state_->CheckFromPrimary(message.envelope);
  if (!wrong.ok()) return wrong;
  if (message.restore->id != incoming_.id ||
      message.restore->bytes != incoming_.bytes) {
    return absl::OutOfRangeError("pieces of the snapshot are missing");
  }
  if (state_->replica.backup() == nullptr) {
    return absl::FailedPreconditionError("no backup");
  }
  return absl::OkStatus();
}

void SnapshotReceiver::StartRestore(ReplicateMessage message,
                                    AnswerCallback callback) {
  std::deque<tensor::Tensor> pieces;
  absl::optional<Answer> refused;
  {
    base::SteadyMutexLock lock(&state_->mu);
    absl::Status wrong = CheckRestoreLocked(message);
    if (!wrong.ok()) {
      refused = state_->PlainAnswer(std::move(wrong));
    } else {
      pieces.swap(incoming_.pieces);
      is_restoring_ = true;
      ++state_->tracked;
    }
  }
  if (refused.has_value()) return callback(*std::move(refused));
  std::thread([self = shared_from_this(), pieces = std::move(pieces),
               message = std::move(message),
               callback = std::move(callback)]() mutable {
    callback(self->Restore(pieces, *message.restore));
    pieces.clear();  // Stop() waits for the end of what the thread owns
    callback = nullptr;
    self->state_->EndTracked();
  }).detach();
}

Answer SnapshotReceiver::Restore(const std::deque<tensor::Tensor>& pieces,
                                 const SnapshotState& snapshot) {
  std::shared_ptr<Server> server = state_->options.new_server();
  absl::Status restored = RestoreValues(pieces, snapshot, server.get());
  if (!restored.ok()) state_->Say(std::string(restored.message()));
  base::SteadyMutexLock lock(&state_->mu);
  is_restoring_ = false;
  if (restored.ok() && incoming_.id == snapshot.id) {
    incoming_.restored.swap(server);
  }
  return state_->PlainAnswer(std::move(restored));
}

absl::StatusOr<Answer> SnapshotReceiver::TakeSnapshot(
    const ReplicateMessage& message) {
  std::shared_ptr<Server> former;
  absl::StatusOr<Answer> answer;
  {
    base::SteadyMutexLock lock(&state_->mu);
    const bool waited = state_->AwaitIdle();
    if (state_->is_stopped) return Draining();
    replication::Backup* const backup = state_->replica.backup();
    const bool is_here =
        incoming_.restored != nullptr && incoming_.id == message.snapshot_id;
    if (!waited || backup == nullptr || !is_here) {
      return state_->PlainAnswer(
          absl::UnavailableError("the values of the snapshot are not here"));
    }
    bool replaces = false;
    answer = backup->OnSnapshot(*message.snapshot, BootNow(), &replaces);
    if (!answer->status.ok()) return answer;  // comes again in another view
    former = std::move(incoming_.restored);
    if (replaces) ReplaceServerLocked(message.snapshot->seq, &former);
    incoming_ = {};
  }
  former = nullptr;  // frees the values without the lock
  state_->Pump();
  return answer;
}

void SnapshotReceiver::ReplaceServerLocked(uint64_t seq,
                                           std::shared_ptr<Server>* restored) {
  state_->server.swap(*restored);
  state_->fed.Reset(seq);
  const auto training = state_->server->training();
  state_->training_view = {state_->group.run,
                           training->tables->placement().epoch()};
  state_->Say(
      absl::StrCat("this server has its values after ", seq, " entries"));
}

}  // namespace penstock::ps
