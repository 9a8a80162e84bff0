// Sends the values of a primary to a joiner.

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/shard.h"
#include "ps/shards/snapshot.h"

namespace penstock::ps {
namespace {

using replication::Answer;
using replication::ReplicaId;
using replication::Snapshot;

// How long a joiner waits after a snapshot that failed.
constexpr absl::Duration kSnapshotAgain = absl::Milliseconds(500);
// Limits the time until the values are at a cut. In a model with synchronous
// and other tables, a step has to be completed first.
constexpr absl::Duration kCutTimeout = absl::Seconds(60);
constexpr absl::Duration kPieceTimeout = absl::Seconds(10);
// Limits the time in which a joiner restores the values.
constexpr absl::Duration kRestoreTimeout = absl::Minutes(10);

uint64_t DrawId() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

// Collects bytes, and sends them in pieces.
class PieceSender {
 public:
  using Send = std::function<absl::Status(const SnapshotPiece& piece)>;

  PieceSender(uint64_t id, Send send) : id_(id), send_(std::move(send)) {}

  absl::Status Take(absl::string_view bytes) {
    while (!bytes.empty()) {
      const size_t some =
          std::min(bytes.size(), kMaxPieceBytes - gathered_.size());
      gathered_.append(bytes.data(), some);
      bytes.remove_prefix(some);
      if (gathered_.size() < kMaxPieceBytes) continue;
      absl::Status status = Flush();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status Flush() {
    if (gathered_.empty()) return absl::OkStatus();
    const auto size = static_cast<int64_t>(gathered_.size());
    auto bytes = tensor::Tensor::Of<uint8_t>(
        {size},
        absl::MakeSpan(reinterpret_cast<const uint8_t*>(gathered_.data()),
                       gathered_.size()));
    if (!bytes.ok()) return bytes.status();
    absl::Status status = send_({id_, offset_, *std::move(bytes)});
    offset_ += gathered_.size();
    gathered_.clear();
    return status;
  }

 private:
  const uint64_t id_;
  const Send send_;
  uint64_t offset_ = 0;
  std::string gathered_;
};

}  // namespace

void Shard::CollectSnapshotLocked(absl::Time now, Due* due) {
  replication::Primary* const leads = primary();
  if (leads == nullptr || server_ == nullptr || is_sending_snapshot_ ||
      now < snapshot_retry_ || fed_ < inherited_) {
    return;
  }
  const std::vector<ReplicaId> wanting = leads->WantSnapshot();
  if (wanting.empty()) return;
  is_sending_snapshot_ = true;
  sending_ = std::make_shared<Cancellation>();
  ++tracked_;
  due->push_back([self = shared_from_this(), to = wanting.front()] {
    std::thread([self, to] { self->SendSnapshot(to); }).detach();
  });
}

void Shard::SendSnapshot(const ReplicaId& to) {
  std::shared_ptr<Server> server;
  {
    absl::MutexLock lock(&mu_);
    server = server_;
  }
  const absl::Status sent = TrySnapshot(to, server);
  server = nullptr;
  {
    absl::MutexLock lock(&mu_);
    is_sending_snapshot_ = false;
    holds_applied_ = false;
    if (!sent.ok()) {
      snapshot_retry_ = BootNow() + kSnapshotAgain;
      Say(absl::StrCat("snapshot to ", TextOf(to), ": ", sent.message()));
      if (primary() != nullptr) primary()->Resend(to);
    }
  }
  Pump();
  EndTracked();
}

absl::Status Shard::TrySnapshot(const ReplicaId& to,
                                const std::shared_ptr<Server>& server) {
  View view;
  std::shared_ptr<Cancellation> cancellation;
  {
    absl::MutexLock lock(&mu_);
    if (!AwaitIdleLocked()) {
      return absl::UnavailableError("a push waits for too long");
    }
    if (primary() == nullptr) return NotPrimaryLocked();
    holds_applied_ = true;
    view = training_view_;
    cancellation = sending_;
  }
  auto taken = server->TakeSnapshot(
      view, absl::nullopt, {}, kCutTimeout, [&](uint64_t ticket) {
        cancellation->EndWaitWith([server, ticket] { server->Cancel(ticket); });
      });
  if (!taken.ok()) return taken.status();
  auto placed = PlaceSnapshot(to, *server, taken->cut);
  if (!placed.ok()) return placed.status();
  const auto training = server->training();
  SnapshotState state;
  state.id = DrawId();
  state.definition.model = training->tables->model().model();
  state.definition.servers = training->tables->placement().servers();
  state.definition.cut = training->cut;
  state.instance = server->instance();
  state.hash_seed = training->hash_seed;
  state.restored = {taken->cut.clocks, taken->cut.version, taken->cut.floor,
                    std::move(placed->second)};
  const replication::Envelope envelope = placed->first.envelope;
  absl::Status sent =
      SendPieces(to, envelope, *training, *std::move(taken), &state);
  if (!sent.ok()) return sent;
  auto restored = CallAndWait(to, ToBytes(envelope, state), kRestoreTimeout);
  if (restored.ok() && !restored->status.ok()) restored = restored->status;
  if (!restored.ok()) return restored.status();
  auto answer =
      CallAndWait(to, ToBytes(placed->first, state.id), kPieceTimeout);
  if (!answer.ok()) return answer.status();
  absl::MutexLock lock(&mu_);
  if (primary() != nullptr) primary()->OnAnswer(*answer, BootNow());
  return answer->status;
}

// Finds the place of a cut in the log, and the members there.
absl::StatusOr<std::pair<Snapshot, MembersImage>> Shard::PlaceSnapshot(
    const ReplicaId& to, const Server& server, const CutState& cut) {
  absl::MutexLock lock(&mu_);
  if (!AwaitIdleLocked()) {
    return absl::UnavailableError("a push waits for too long");
  }
  if (primary() == nullptr) return NotPrimaryLocked();
  AdvanceLocked(cut.clocks);
  holds_applied_ = false;
  const uint64_t applied = primary()->applied();
  const auto exchange = server.Serving(training_view_);
  if (!exchange.ok()) return exchange.status();
  const MembersImage now = (*exchange)->Members();
  MembersImage members = now;
  if (!images_.empty() && images_.front().first <= applied) {
    members = images_.front().second;
  } else if (!unapplied_.empty()) {
    return absl::InternalError("the members at the cut are not known");
  }
  // A push behind the cut comes again, and counts then.
  members.counted = now.counted;
  for (RankClock& each : members.counted) {
    for (const RankClock& rank : cut.clocks) {
      const bool is_same = rank.worker.rank == each.worker.rank;
      if (is_same && each.clock >= rank.clock) {
        each.clock = std::max<uint64_t>(rank.clock, 1) - 1;
      }
    }
  }
  auto message = primary()->MakeSnapshot(to, nullptr, BootNow());
  if (!message.has_value()) {
    return absl::UnavailableError("the replica wants no snapshot any more");
  }
  return std::make_pair(*std::move(message), std::move(members));
}

absl::Status Shard::SendPieces(const ReplicaId& to,
                               const replication::Envelope& envelope,
                               const Server::Training& training,
                               ModelSnapshot snapshot, SnapshotState* state) {
  std::shared_ptr<Cancellation> cancellation;
  {
    absl::MutexLock lock(&mu_);
    cancellation = sending_;
  }
  PieceSender sender(state->id, [&](const SnapshotPiece& piece) {
    if (cancellation->is_cancelled()) return absl::CancelledError("stopped");
    const auto answer =
        CallAndWait(to, ToBytes(envelope, piece), kPieceTimeout);
    return answer.ok() ? answer->status : answer.status();
  });
  absl::Status written = WriteValues(
      training, std::move(snapshot), cancellation.get(),
      [&](absl::string_view bytes) { return sender.Take(bytes); }, state);
  return written.ok() ? sender.Flush() : written;
}

absl::StatusOr<Answer> Shard::CallAndWait(
    const ReplicaId& to, const absl::StatusOr<grpc::ByteBuffer>& request,
    absl::Duration timeout) {
  if (!request.ok()) return request.status();
  struct Result {
    absl::Notification is_there;
    absl::StatusOr<grpc::ByteBuffer> reply;
  };
  auto result = std::make_shared<Result>();
  options_.peers->Replicate(to.server, *request, timeout,
                            [result](absl::StatusOr<grpc::ByteBuffer> reply) {
                              result->reply = std::move(reply);
                              result->is_there.Notify();
                            });
  result->is_there.WaitForNotification();
  if (!result->reply.ok()) return result->reply.status();
  return AnswerIn(*result->reply);
}

}  // namespace penstock::ps
