// The messages of a primary, and what the other replicas do with them.

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/shard.h"
#include "ps/shards/snapshot.h"

namespace penstock::ps {
namespace {

using replication::Answer;
using replication::Append;
using replication::Envelope;
using replication::ReplicaId;

// How long a refused or lost message waits before it is repeated.
constexpr absl::Duration kSendAgain = absl::Milliseconds(50);

// A message may take its share of a lease, and the time that a slow network
// needs.
absl::Duration TimeoutFor(size_t bytes, const replication::LeaseTimes& lease) {
  constexpr double kSlowBytesPerSecond = 20e6;
  return lease.duration / 2 +
         absl::Seconds(static_cast<double>(bytes) / kSlowBytesPerSecond);
}

}  // namespace

void Shard::CollectSendsLocked(absl::Time now, Due* due) {
  replication::Primary* const leads = primary();
  if (leads == nullptr) return;
  for (const ReplicaId& peer : leads->Peers()) {
    Link& link = links_[peer];
    if (link.is_busy || now < link.retry) continue;
    // A heartbeat has entries, too. Only heartbeats find a silent peer, so news
    // do not replace them.
    const bool is_heartbeat = now >= link.heartbeat;
    if (is_heartbeat) link.heartbeat = now + options_.lease.duration / 4;
    absl::optional<Append> message =
        is_heartbeat ? leads->Heartbeat(peer, now) : leads->Next(peer, now);
    if (!message.has_value()) continue;
    link.is_busy = true;
    ++tracked_;
    due->push_back(
        [self = shared_from_this(), peer, message = *std::move(message),
         generation = generation_] { self->Send(peer, message, generation); });
  }
}

void Shard::Send(const ReplicaId& to, const Append& append,
                 uint64_t generation) {
  absl::StatusOr<grpc::ByteBuffer> bytes = ToBytes(append);
  if (!bytes.ok()) {
    OnReply(to, generation, bytes.status());
    return;
  }
  const absl::Duration timeout = TimeoutFor(bytes->Length(), options_.lease);
  options_.peers->Replicate(to.server, *bytes, timeout,
                            [self = shared_from_this(), to, generation](
                                const absl::StatusOr<grpc::ByteBuffer>& reply) {
                              self->OnReply(to, generation, reply);
                            });
}

void Shard::OnReply(const ReplicaId& to, uint64_t generation,
                    const absl::StatusOr<grpc::ByteBuffer>& reply) {
  absl::StatusOr<Answer> answer =
      reply.ok() ? AnswerIn(*reply) : reply.status();
  // A server answers for itself only.
  if (answer.ok() && answer->envelope.from != to) {
    answer = absl::UnavailableError("another server has the address");
  }
  {
    absl::MutexLock lock(&mu_);
    replication::Primary* const leads = primary();
    if (generation == generation_ && leads != nullptr) {
      const absl::Time now = BootNow();
      Link& link = links_[to];
      link.is_busy = false;
      if (answer.ok()) leads->OnAnswer(*answer, now);
      if (!answer.ok() || !answer->status.ok()) {
        leads->Resend(to);
        link.retry = now + kSendAgain;
      }
    }
  }
  Pump();
  EndTracked();
}

Answer Shard::PlainAnswerLocked(absl::Status status) const {
  Answer answer;
  answer.envelope = {group_, self_, replica_.view()};
  answer.status = std::move(status);
  answer.is_empty = !replica_.holdings().has_values;
  return answer;
}

absl::Status Shard::CheckFromPrimaryLocked(const Envelope& envelope) const {
  absl::Status same = CheckSameGroup(group_, envelope.group);
  if (!same.ok()) return same;
  if (envelope.view != replica_.view()) {
    return absl::UnavailableError(
        absl::StrCat("the message is of view ", envelope.view,
                     ", and this server is in view ", replica_.view()));
  }
  if (envelope.from == view_.shards[group_.shard].primary) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(TextOf(envelope.from), " is not the primary"));
}

void Shard::Handle(ReplicateMessage message, AnswerCallback callback) {
  if (message.restore.has_value()) {
    return StartRestore(std::move(message), std::move(callback));
  }
  if (message.snapshot.has_value()) return callback(TakeSnapshot(message));
  absl::StatusOr<Answer> answer;
  {
    absl::MutexLock lock(&mu_);
    replication::Backup* const backup =
        is_stopped_ ? nullptr : replica_.backup();
    if (is_stopped_) {
      answer = Draining();
    } else if (!failure_.ok()) {
      answer = failure_;  // the primary hears nothing, and drops this replica
    } else if (backup == nullptr) {
      absl::Status wrong = CheckFromPrimaryLocked(message.envelope);
      if (wrong.ok()) wrong = absl::FailedPreconditionError("no backup");
      answer = PlainAnswerLocked(std::move(wrong));
    } else if (message.append.has_value()) {
      answer = backup->OnAppend(*message.append, BootNow());
    } else {
      answer = TakePieceLocked(message);
    }
  }
  callback(std::move(answer));
  Pump();
}

// Pieces come in order: the primary waits for each answer.
absl::StatusOr<Answer> Shard::TakePieceLocked(const ReplicateMessage& message) {
  absl::Status wrong = CheckFromPrimaryLocked(message.envelope);
  if (!wrong.ok()) return PlainAnswerLocked(std::move(wrong));
  const SnapshotPiece& piece = *message.piece;
  if (piece.offset == 0) {
    incoming_ = {};
    incoming_.id = piece.id;
  }
  if (piece.id != incoming_.id || piece.offset != incoming_.bytes) {
    return PlainAnswerLocked(absl::OutOfRangeError(
        absl::StrCat("the piece begins at ", piece.offset, " of the snapshot, ",
                     "and this server has ", incoming_.bytes, " bytes")));
  }
  if (incoming_.bytes + piece.bytes.byte_size() > options_.max_snapshot_bytes) {
    incoming_ = {};
    return PlainAnswerLocked(absl::ResourceExhaustedError(absl::StrCat(
        "the snapshot takes more than ", options_.max_snapshot_bytes,
        " bytes: give all servers the same limits of memory")));
  }
  incoming_.bytes += piece.bytes.byte_size();
  incoming_.pieces.push_back(piece.bytes);
  return PlainAnswerLocked(absl::OkStatus());
}

void Shard::StartRestore(ReplicateMessage message, AnswerCallback callback) {
  std::deque<tensor::Tensor> pieces;
  absl::optional<Answer> refused;
  {
    absl::MutexLock lock(&mu_);
    absl::Status wrong = is_stopped_ ? Draining() : absl::OkStatus();
    if (wrong.ok()) wrong = CheckFromPrimaryLocked(message.envelope);
    const bool is_whole = message.restore->id == incoming_.id &&
                          message.restore->bytes == incoming_.bytes;
    if (wrong.ok() && !is_whole) {
      wrong = absl::OutOfRangeError("pieces of the snapshot are missing");
    }
    if (wrong.ok() && replica_.backup() == nullptr) {
      wrong = absl::FailedPreconditionError("no backup");
    }
    if (!wrong.ok()) {
      refused = PlainAnswerLocked(std::move(wrong));
    } else {
      pieces.swap(incoming_.pieces);
      ++tracked_;
    }
  }
  if (refused.has_value()) return callback(*std::move(refused));
  std::thread([this, self = shared_from_this(), pieces = std::move(pieces),
               message = std::move(message), callback = std::move(callback)] {
    std::shared_ptr<Server> server = options_.new_server();
    absl::Status restored =
        RestoreValues(pieces, *message.restore, server.get());
    absl::StatusOr<Answer> answer;
    {
      absl::MutexLock lock(&mu_);
      if (restored.ok() && incoming_.id == message.restore->id) {
        incoming_.restored = std::move(server);
      }
      answer = PlainAnswerLocked(std::move(restored));
    }
    if (!answer->status.ok()) Say(std::string(answer->status.message()));
    server = nullptr;
    callback(std::move(answer));
    EndTracked();
  }).detach();
}

absl::StatusOr<Answer> Shard::TakeSnapshot(const ReplicateMessage& message) {
  std::shared_ptr<Server> former;
  absl::StatusOr<Answer> answer;
  {
    absl::MutexLock lock(&mu_);
    const bool waited = AwaitIdleLocked();
    if (is_stopped_) return Draining();
    replication::Backup* const backup = replica_.backup();
    const bool is_here =
        incoming_.restored != nullptr && incoming_.id == message.snapshot_id;
    if (!waited || backup == nullptr || !is_here) {
      return PlainAnswerLocked(
          absl::UnavailableError("the values of the snapshot are not here"));
    }
    bool replaces = false;
    answer = backup->OnSnapshot(*message.snapshot, BootNow(), &replaces);
    former = std::move(incoming_.restored);
    if (replaces) {
      former.swap(server_);
      fed_ = message.snapshot->seq;
      unapplied_.clear();
      images_.clear();
      training_view_ = {group_.run,
                        server_->training()->tables->placement().epoch()};
      Say(absl::StrCat("this server has its values after ", fed_, " entries"));
    }
    incoming_ = {};
  }
  former = nullptr;  // frees the values without the lock
  Pump();
  return answer;
}

}  // namespace penstock::ps
