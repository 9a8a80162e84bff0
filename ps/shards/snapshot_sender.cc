#include "ps/shards/snapshot_sender.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/snapshot.h"
#include "transport/base/steady_notification.h"

namespace penstock::ps {
namespace {

using replication::Answer;
using replication::ReplicaId;
using replication::Snapshot;

// The pause between a failed snapshot and the next attempt for the same joiner.
constexpr absl::Duration kSnapshotAgain = absl::Milliseconds(500);
// Limits the time until the values are at a cut. If the model has both
// synchronous and other tables, a step must first be complete.
constexpr absl::Duration kCutTimeout = absl::Seconds(60);
constexpr absl::Duration kPieceTimeout = absl::Seconds(10);
// The time for which the sender and the receiver may have different views, and
// the interval at which the sender checks this.
constexpr absl::Duration kViewTimeout = absl::Seconds(5);
constexpr absl::Duration kViewAgain = absl::Milliseconds(50);
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

// Returns `counted` without the pushes after the cut. These pushes are sent
// again, and must be counted then.
std::vector<RankClock> CountedAt(const CutState& cut,
                                 std::vector<RankClock> counted) {
  for (RankClock& each : counted) {
    for (const RankClock& rank : cut.clocks) {
      const bool is_same = rank.worker.rank == each.worker.rank;
      if (is_same && each.clock >= rank.clock) {
        each.clock = std::max<uint64_t>(rank.clock, 1) - 1;
      }
    }
  }
  return counted;
}

}  // namespace

SnapshotSender::SnapshotSender(std::shared_ptr<ReplicaState> state)
    : state_(std::move(state)) {}

void SnapshotSender::Collect(absl::Time now, ReplicaState::Due* due) {
  base::SteadyMutexLock lock(&state_->mu);
  replication::Primary* const leads = state_->primary();
  if (leads == nullptr || state_->server == nullptr || is_sending_ ||
      now < retry_ || state_->fed.last() < state_->inherited) {
    return;
  }
  const std::vector<ReplicaId> wanting = leads->WantSnapshot();
  if (wanting.empty()) return;
  // Goes through the joiners in turn, so that a joiner that always fails does
  // not delay the others.
  const auto next = std::upper_bound(wanting.begin(), wanting.end(), last_);
  last_ = next == wanting.end() ? wanting.front() : *next;
  is_sending_ = true;
  cancellation_ = std::make_shared<Cancellation>();
  ++state_->tracked;
  due->push_back([self = shared_from_this(), to = last_] {
    std::thread([self, to] { self->Send(to); }).detach();
  });
}

void SnapshotSender::Cancel() {
  std::shared_ptr<Cancellation> cancellation;
  {
    base::SteadyMutexLock lock(&state_->mu);
    cancellation = cancellation_;
  }
  if (cancellation != nullptr) cancellation->Cancel();
}

void SnapshotSender::Send(const ReplicaId& to) {
  std::shared_ptr<Server> server;
  {
    base::SteadyMutexLock lock(&state_->mu);
    server = state_->server;
  }
  const absl::Status sent = TrySend(to, server);
  server = nullptr;
  {
    base::SteadyMutexLock lock(&state_->mu);
    is_sending_ = false;
    state_->fed.Release();
    if (!sent.ok()) {
      retry_ = BootNow() + kSnapshotAgain;
      state_->Say(
          absl::StrCat("snapshot to ", TextOf(to), ": ", sent.message()));
      if (state_->primary() != nullptr) state_->primary()->LoseSnapshot(to);
    }
  }
  state_->Pump();
  state_->EndTracked();
}

absl::StatusOr<ModelSnapshot> SnapshotSender::TakeValues(
    const std::shared_ptr<Server>& server) {
  View view;
  std::shared_ptr<Cancellation> cancellation;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (!state_->AwaitIdle()) {
      return absl::UnavailableError("a push waits for too long");
    }
    if (state_->primary() == nullptr) return state_->NotPrimary();
    state_->fed.Hold();
    view = state_->training_view;
    cancellation = cancellation_;
    ++state_->wants_idle;  // no entry is fed until the server knows the cut
  }
  bool is_idle = true;
  const auto feed_again = [&] {
    base::SteadyMutexLock lock(&state_->mu);
    state_->wants_idle -= is_idle ? 1 : 0;
    state_->wants_pump = true;
    is_idle = false;
  };
  auto values = server->TakeSnapshot(
      view, absl::nullopt, {}, kCutTimeout, [&](uint64_t ticket) {
        feed_again();
        cancellation->EndWaitWith([server, ticket] { server->Cancel(ticket); });
      });
  feed_again();
  return values;
}

absl::Status SnapshotSender::TrySend(const ReplicaId& to,
                                     const std::shared_ptr<Server>& server) {
  absl::StatusOr<ModelSnapshot> values = TakeValues(server);
  if (!values.ok()) return values.status();
  absl::StatusOr<Place> place = FindPlace(to, *server, values->cut);
  if (!place.ok()) return place.status();
  const auto training = server->training();
  SnapshotState state;
  state.id = DrawId();
  state.definition.model = training->tables->model().model();
  state.definition.servers = training->tables->placement().servers();
  state.definition.cut = training->cut;
  state.instance = server->instance();
  state.hash_seed = training->hash_seed;
  state.restored = {values->cut.clocks, values->cut.version, values->cut.floor,
                    std::move(place->members)};
  absl::Status sent =
      SendPieces(to, place->message, *training, *std::move(values), &state);
  if (!sent.ok()) return sent;
  const auto restored = Call(
      to, place->message,
      [&](const Snapshot& now) { return ToBytes(now.envelope, state); },
      kRestoreTimeout);
  if (!restored.ok()) return restored.status();
  const auto answer = Call(
      to, place->message,
      [&](const Snapshot& now) { return ToBytes(now, state.id); },
      kPieceTimeout);
  if (!answer.ok()) return answer.status();
  base::SteadyMutexLock lock(&state_->mu);
  replication::Primary* const leads = state_->primary();
  if (leads != nullptr) leads->OnAnswer(*answer, BootNow());
  return answer->status;
}

// Finds the position of a cut in the log, and the members at that position.
absl::StatusOr<SnapshotSender::Place> SnapshotSender::FindPlace(
    const ReplicaId& to, const Server& server, const CutState& cut) {
  base::SteadyMutexLock lock(&state_->mu);
  if (!state_->AwaitIdle()) {
    return absl::UnavailableError("a push waits for too long");
  }
  if (state_->primary() == nullptr) return state_->NotPrimary();
  state_->Advance(cut.clocks);
  state_->fed.Release();
  const auto exchange = server.Serving(state_->training_view);
  if (!exchange.ok()) return exchange.status();
  const MembersImage now = (*exchange)->Members();
  absl::optional<MembersImage> members = state_->fed.MembersAtApplied(now);
  if (!members.has_value()) {
    return absl::InternalError("the members at the cut are not known");
  }
  members->counted = CountedAt(cut, now.counted);
  auto message = state_->primary()->MakeSnapshot(to, nullptr, BootNow());
  if (!message.has_value()) {
    return absl::UnavailableError("the replica no longer needs a snapshot");
  }
  return Place{*std::move(message), *std::move(members)};
}

absl::Status SnapshotSender::SendPieces(const ReplicaId& to,
                                        const Snapshot& message,
                                        const Server::Training& training,
                                        ModelSnapshot snapshot,
                                        SnapshotState* state) {
  std::shared_ptr<Cancellation> cancellation;
  {
    base::SteadyMutexLock lock(&state_->mu);
    cancellation = cancellation_;
  }
  PieceSender sender(state->id, [&](const SnapshotPiece& piece) {
    return Call(
               to, message,
               [&](const Snapshot& now) {
                 return ToBytes(now.envelope, piece);
               },
               kPieceTimeout)
        .status();
  });
  absl::Status written = WriteValues(
      training, std::move(snapshot), cancellation.get(),
      [&](absl::string_view bytes) { return sender.Take(bytes); }, state);
  return written.ok() ? sender.Flush() : written;
}

absl::StatusOr<Snapshot> SnapshotSender::Renew(const ReplicaId& to,
                                               const Snapshot& message) {
  base::SteadyMutexLock lock(&state_->mu);
  if (cancellation_->is_cancelled()) return absl::CancelledError("stopped");
  if (state_->primary() == nullptr) return state_->NotPrimary();
  auto renewed = state_->primary()->RenewSnapshot(to, message, BootNow());
  if (renewed.has_value()) return *std::move(renewed);
  return absl::AbortedError("the replica no longer needs a snapshot");
}

absl::StatusOr<Answer> SnapshotSender::Call(const ReplicaId& to,
                                            const Snapshot& message,
                                            const MakeRequest& make,
                                            absl::Duration timeout) {
  const absl::Time limit = BootNow() + kViewTimeout;
  while (true) {
    const auto now = Renew(to, message);
    if (!now.ok()) return now.status();
    const auto request = make(*now);
    if (!request.ok()) return request.status();
    absl::StatusOr<Answer> answer = CallOnce(to, message, *request, timeout);
    if (!answer.ok() || answer->status.ok()) return answer;
    const bool differs = answer->envelope.view != now->envelope.view;
    if (!differs || BootNow() >= limit) return answer->status;
    absl::SleepFor(kViewAgain);
  }
}

absl::StatusOr<Answer> SnapshotSender::CallOnce(const ReplicaId& to,
                                                const Snapshot& message,
                                                const grpc::ByteBuffer& request,
                                                absl::Duration timeout) {
  struct Result {
    base::SteadyNotification is_there;
    absl::StatusOr<grpc::ByteBuffer> reply;
  };
  auto result = std::make_shared<Result>();
  state_->options.peers->Replicate(
      to.server, request, timeout,
      [result](absl::StatusOr<grpc::ByteBuffer> reply) {
        result->reply = std::move(reply);
        result->is_there.Notify();
      });
  while (!result->is_there.WaitFor(kViewAgain)) {
    // Stops if the joiner has lost its progress, so that it does not delay
    // other joiners.
    const auto wanted = Renew(to, message);
    if (!wanted.ok()) return wanted.status();
  }
  if (!result->reply.ok()) return result->reply.status();
  return AnswerIn(*result->reply);
}

}  // namespace penstock::ps
