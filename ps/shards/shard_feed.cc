// Feeds the entries of the log to the server, in order.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/shard.h"

namespace penstock::ps {
namespace {

using replication::EntryPtr;

// How long an entry waits that the server has no room for.
constexpr absl::Duration kFeedAgain = absl::Milliseconds(20);

// Limits the wait for a push that is being fed.
constexpr absl::Duration kIdleTimeout = absl::Seconds(10);
// Server::Pull() uses small tickets.
constexpr uint64_t kFeedTickets = uint64_t{1} << 63;
// How long Pump() waits for a step that is being applied, before it sends
// again.
constexpr absl::Duration kStepWait = absl::Milliseconds(10);

// Returns true if the server may take the push later.
bool ComesAgain(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

void Shard::CollectFeedLocked(absl::Time now, Due* due) {
  const replication::Holdings& holdings = replica_.holdings();
  if (server_ == nullptr || is_feeding_ || wants_idle_ > 0 ||
      fed_ >= holdings.committed || now < feed_retry_) {
    return;
  }
  if (!failure_.ok() && (primary() == nullptr || LeavesToBackupLocked())) {
    return;
  }
  const EntryPtr entry = holdings.log.At(fed_ + 1);
  const bool may_wait = !entry->pushes.empty() || holds_applied_;
  if (unapplied_.empty() && may_wait) {
    images_.clear();
    AddImageLocked();
  }
  is_feeding_ = true;
  ++tracked_;
  due->push_back([self = shared_from_this(), entry, server = server_] {
    self->Feed(entry, server);
  });
}

// Remembers the members after the last entry that was fed.
void Shard::AddImageLocked() {
  const auto exchange = server_->Serving(training_view_);
  if (exchange.ok()) images_.push_back({fed_, (*exchange)->Members()});
}

bool Shard::AwaitIdleLocked() {
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !is_feeding_;
  };
  ++wants_idle_;
  const bool idle =
      mu_.AwaitWithTimeout(absl::Condition(&is_idle), kIdleTimeout);
  --wants_idle_;
  wants_pump_ = true;
  return idle;
}

bool Shard::LeavesToBackupLocked() {
  if (failure_.ok() && server_ != nullptr) {
    const absl::Status state = server_->AppliedClocks(training_view_).status();
    // A server that shuts down has not failed.
    if (absl::IsAborted(state) || absl::IsDataLoss(state) ||
        absl::IsResourceExhausted(state)) {
      failure_ = state;
      Say(absl::StrCat("its server has failed: ", state.message()));
    }
  }
  return !failure_.ok() && !view_.shards[group_.shard].backups.empty();
}

// Takes what CheckPush() found, if this server has accepted the push.
absl::optional<Shard::Checked> Shard::TakeChecked(uint64_t seq) {
  absl::MutexLock lock(&mu_);
  absl::optional<Checked> checked;
  const auto call = pushes_.find(seq);
  if (call != pushes_.end()) {
    checked = std::move(call->second->checked);
    call->second->checked.reset();
  }
  return checked;
}

void Shard::Feed(const EntryPtr& entry, const std::shared_ptr<Server>& server) {
  const View view = training_view();
  const auto exchange = server->Serving(view);
  // Else the version that an entry meets would depend on the server's speed.
  if (exchange.ok() && !(*exchange)->AwaitStep(kStepWait)) {
    {
      absl::MutexLock lock(&mu_);
      is_feeding_ = false;
      wants_pump_ = true;
    }
    return EndTracked();
  }
  if (!entry->pushes.empty()) {
    if (exchange.ok()) return FeedPush(entry, *exchange);
    OnPushFed(entry, exchange.status());
  } else if (entry->joins.has_value()) {
    OnJoinFed(entry, server->Join(view, *entry->joins));
  } else {
    FeedEvent(entry, server.get());
  }
}

View Shard::training_view() {
  absl::MutexLock lock(&mu_);
  return training_view_;
}

void Shard::FeedPush(const EntryPtr& entry,
                     const std::shared_ptr<Exchange>& exchange) {
  const replication::WorkerPush& push = entry->pushes.front();
  absl::optional<Checked> checked = TakeChecked(entry->seq);
  if (!checked.has_value()) {
    const auto& payload = static_cast<const PushPayload&>(*entry->payload);
    auto again = exchange->Check(push.worker, push.clock, payload.gradients());
    if (!again.ok()) return OnPushFed(entry, again.status());
    if (again->repeated.has_value()) return OnPushFed(entry, *again->repeated);
    checked = Checked{exchange, std::move(again->push)};
  }
  checked->exchange->Take(
      kFeedTickets | entry->seq, std::move(checked->push),
      [self = shared_from_this(),
       entry](const absl::StatusOr<Exchange::PushVerdict>& is) {
        self->OnPushFed(entry, is);
      },
      /*will_help=*/false);
}

void Shard::OnPushFed(const EntryPtr& entry,
                      const absl::StatusOr<Exchange::PushVerdict>& verdict) {
  PushCallPtr call;
  uint64_t reign = 0;
  {
    absl::MutexLock lock(&mu_);
    reign = reign_;
    const bool leaves = !verdict.ok() && LeavesToBackupLocked();
    if (leaves || (!failure_.ok() && primary() == nullptr)) {
      is_feeding_ = false;
    } else if (ComesAgain(verdict.status()) && failure_.ok()) {
      is_feeding_ = false;
      feed_retry_ = BootNow() + kFeedAgain;
    } else {
      const auto found = pushes_.find(entry->seq);
      if (found != pushes_.end()) {
        call = std::move(found->second);
        pushes_.erase(found);
        checked_bytes_ -= call->held_bytes;
        in_log_.erase(
            {{call->worker.rank, call->worker.incarnation}, call->clock});
      }
      EndFeedLocked(
          entry, verdict.ok() && *verdict == Exchange::PushVerdict::kCounted);
    }
  }
  if (call != nullptr) {
    AnswerWhenSure(reign, call->ticket, [this, ticket = call->ticket, verdict] {
      AnswerPush(ticket, verdict);
    });
  }
  Pump();
  EndTracked();
}

void Shard::OnJoinFed(const EntryPtr& entry,
                      absl::StatusOr<Exchange::Joined> joined) {
  uint64_t reign = 0;
  uint64_t ticket = 0;
  {
    absl::MutexLock lock(&mu_);
    reign = reign_;
    const auto found = joins_.find(entry->seq);
    if (found != joins_.end()) {
      ticket = found->second;
      joins_.erase(found);
    }
    if (joined.ok()) {
      joined->lease = options_.worker_lease;
      NoteAliveLocked(*entry->joins);
    }
    EndFeedLocked(entry, false);
  }
  if (ticket != 0) {
    AnswerWhenSure(reign, ticket, [this, ticket, joined] {
      absl::optional<Ticket> call = TakeTicket(ticket);
      if (call.has_value()) call->join(joined);
    });
  }
  Pump();
  EndTracked();
}

void Shard::FeedEvent(const EntryPtr& entry, Server* server) {
  const auto& event = static_cast<const EventPayload&>(*entry->payload);
  switch (event.kind()) {
    case EventPayload::Kind::kHeartbeat:
      server->Heartbeat(group_.run, event.worker()).IgnoreError();
      break;
    case EventPayload::Kind::kLeave:
      server->Leave(event.worker(), group_.run);
      break;
    case EventPayload::Kind::kLost:
      server->Lost(event.worker(), group_.run);
      break;
    case EventPayload::Kind::kStart:
      if (const auto exchange = server->Serving(training_view());
          exchange.ok()) {
        (*exchange)->Start();
      }
      break;
  }
  {
    absl::MutexLock lock(&mu_);
    EndFeedLocked(entry, false);
  }
  Pump();
  EndTracked();
}

// Records that the server has taken or refused an entry. Only a push that has
// counted waits until the values have it.
void Shard::EndFeedLocked(const EntryPtr& entry, bool has_counted) {
  is_feeding_ = false;
  fed_ = entry->seq;
  if (unapplied_.empty() && !has_counted && !holds_applied_) {
    images_.clear();
    return replica_.Applied();
  }
  if (entry->pushes.empty()) {
    AddImageLocked();
  }
  Fed fed{fed_, absl::nullopt};
  if (has_counted) fed.push = entry->pushes.front();
  unapplied_.push_back(fed);
}

void Shard::PollAppliedLocked() {
  if (unapplied_.empty() || holds_applied_) return;
  const auto clocks = server_->AppliedClocks(training_view_);
  if (clocks.ok()) AdvanceLocked(*clocks);
}

// Records as applied the longest prefix of the entries whose pushes are below
// the clocks.
void Shard::AdvanceLocked(const std::vector<RankClock>& clocks) {
  while (!unapplied_.empty()) {
    const Fed& first = unapplied_.front();
    if (first.push.has_value()) {
      const auto rank = std::lower_bound(
          clocks.begin(), clocks.end(), first.push->worker.rank,
          [](const RankClock& a, uint32_t b) { return a.worker.rank < b; });
      const bool is_in = rank != clocks.end() &&
                         rank->worker.rank == first.push->worker.rank &&
                         rank->clock > first.push->clock;
      if (!is_in) break;
    }
    replica_.Applied();
    unapplied_.pop_front();
  }
  const uint64_t applied = replica_.holdings().applied;
  while (images_.size() > 1 && images_[1].first <= applied) {
    images_.pop_front();
  }
  if (unapplied_.empty() && !is_feeding_) images_.clear();
}

}  // namespace penstock::ps
