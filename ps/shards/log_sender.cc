#include "ps/shards/log_sender.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replication/view.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/wire.h"

namespace penstock::ps {
namespace {

using replication::Answer;
using replication::Append;
using replication::ReplicaId;

// The pause before a refused or lost message is sent again.
constexpr absl::Duration kSendAgain = absl::Milliseconds(50);

// The shortest time for which the message that entries are committed waits for
// a next entry, which would carry this fact. No caller waits for this message,
// and it costs as much CPU as a small push. No timer wakes the thread after
// this time. Without another event, the next tick of Shard sends the message,
// up to 20 ms later.
constexpr absl::Duration kNewsWait = absl::Milliseconds(5);

// Returns the timeout of a message: half a lease, plus the time that a slow
// network needs for the bytes.
absl::Duration TimeoutFor(size_t bytes, const replication::LeaseTimes& lease) {
  constexpr double kSlowBytesPerSecond = 20e6;
  return lease.duration / 2 +
         absl::Seconds(static_cast<double>(bytes) / kSlowBytesPerSecond);
}

}  // namespace

LogSender::LogSender(std::shared_ptr<ReplicaState> state)
    : state_(std::move(state)) {}

void LogSender::Collect(absl::Time now, ReplicaState::Due* due) {
  base::SteadyMutexLock lock(&state_->mu);
  replication::Primary* const leads = state_->primary();
  if (leads == nullptr) return;
  if (view_ != state_->replica.view()) {
    view_ = state_->replica.view();
    links_.clear();
  }
  for (const ReplicaId& peer : leads->Peers()) {
    Link& link = links_[peer];
    if (link.is_busy || now < link.retry) continue;
    // Sends a heartbeat when it is due, even if there are new entries; the
    // heartbeat then carries them. Only heartbeats detect a silent peer.
    const bool is_heartbeat = now >= link.heartbeat;
    if (is_heartbeat) {
      link.heartbeat = now + state_->options.lease.duration / 4;
    }
    const bool has_entries = link.sent < leads->holdings().log.last();
    if (!is_heartbeat && !has_entries && now < link.news) continue;
    absl::optional<Append> message =
        is_heartbeat ? leads->Heartbeat(peer, now) : leads->Next(peer, now);
    if (!message.has_value()) continue;
    link.is_busy = true;
    link.sent = message->prev_seq + message->entries.size();
    ++state_->tracked;
    due->push_back(
        [self = shared_from_this(), peer, message = *std::move(message)] {
          self->Send(peer, message);
        });
  }
}

void LogSender::Send(const ReplicaId& to, const Append& append) {
  const uint64_t view = append.envelope.view;
  const absl::StatusOr<grpc::ByteBuffer> bytes = ToBytes(append);
  if (!bytes.ok()) return OnReply(to, view, bytes.status());
  const ShardOptions& options = state_->options;
  options.peers->Replicate(
      to.server, *bytes, TimeoutFor(bytes->Length(), options.lease),
      [self = shared_from_this(), to,
       view](const absl::StatusOr<grpc::ByteBuffer>& reply) {
        self->OnReply(to, view, reply);
      });
}

void LogSender::WarnOfGroup(const ReplicaId& from,
                            const replication::Group& theirs, Link* link) {
  const absl::Status same = replication::CheckSameGroup(state_->group, theirs);
  if (same.ok() || std::exchange(link->is_warned, true)) return;
  state_->Say(absl::StrCat(replication::TextOf(from),
                           " refuses to be a replica: ", same.message()));
}

void LogSender::OnReply(const ReplicaId& to, uint64_t view,
                        const absl::StatusOr<grpc::ByteBuffer>& reply) {
  absl::StatusOr<Answer> answer =
      reply.ok() ? AnswerIn(*reply) : reply.status();
  // Refuses an answer from a server other than `to`: the address of `to` may
  // now belong to another server.
  if (answer.ok() && answer->envelope.from != to) {
    answer = absl::UnavailableError("another server has the address");
  }
  {
    base::SteadyMutexLock lock(&state_->mu);
    replication::Primary* const leads = state_->primary();
    if (view == view_ && leads != nullptr) {
      const absl::Time now = BootNow();
      Link& link = links_[to];
      link.is_busy = false;
      link.news = now + kNewsWait;
      if (answer.ok()) {
        WarnOfGroup(to, answer->envelope.group, &link);
        leads->OnAnswer(*answer, now);
      }
      if (!answer.ok() || !answer->status.ok()) {
        leads->Resend(to);
        link.sent = 0;
        link.retry = now + kSendAgain;
      }
    }
  }
  state_->Work();
  state_->EndTracked();
}

}  // namespace penstock::ps
