#include "ps/shards/feeder.h"

#include <utility>

#include "ps/server/running_time.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/entry.h"
#include "ps/shards/feed_order.h"

namespace penstock::ps {
namespace {

using replication::EntryPtr;

// The pause before an entry is fed again that did not fit at the server.
constexpr absl::Duration kFeedAgain = absl::Milliseconds(20);
// The first ticket of the feeder. Server::Pull() returns smaller tickets.
constexpr uint64_t kFeedTickets = uint64_t{1} << 63;
// Limits one wait for a step that is being applied. Between two waits, the
// thread does other work.
constexpr absl::Duration kStepWait = absl::Milliseconds(10);

// Returns true if the server may accept the same push later.
bool ComesAgain(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Feeder::Feeder(std::shared_ptr<ReplicaState> state,
               std::shared_ptr<WorkerCalls> calls)
    : state_(std::move(state)), calls_(std::move(calls)) {}

void Feeder::Collect(absl::Time now, Wait wait, ReplicaState::Due* due) {
  base::SteadyMutexLock lock(&state_->mu);
  const replication::Holdings& holdings = state_->replica.holdings();
  FedEntries& fed = state_->fed;
  if (state_->server == nullptr || fed.is_feeding() || state_->wants_idle > 0 ||
      fed.last() >= holdings.committed || now < retry_) {
    return;
  }
  const bool has_failed = !state_->failure.ok();
  if (has_failed &&
      (state_->primary() == nullptr || state_->LeavesToBackup())) {
    return;
  }
  const EntryPtr entry = holdings.log.At(fed.last() + 1);
  fed.Begin(*entry, MembersLocked());
  ++state_->tracked;
  due->push_back([self = shared_from_this(), entry, server = state_->server,
                  wait] { self->Feed(entry, server, wait); });
}

FedEntries::MembersNow Feeder::MembersLocked() {
  return [server = state_->server,
          view = state_->training_view]() -> absl::optional<MembersImage> {
    const auto exchange = server->Serving(view);
    if (!exchange.ok()) return absl::nullopt;
    return (*exchange)->Members();
  };
}

View Feeder::training_view() {
  base::SteadyMutexLock lock(&state_->mu);
  return state_->training_view;
}

void Feeder::Feed(const EntryPtr& entry, const std::shared_ptr<Server>& server,
                  Wait wait) {
  const View view = training_view();
  const auto exchange = server->Serving(view);
  absl::optional<PushId> push;
  if (!entry->pushes.empty()) {
    const replication::WorkerPush& first = entry->pushes.front();
    push = PushId{first.worker.rank, first.clock};
  }
  const auto may_feed = [&](const Coordinator& all) {
    return MayFeed(all, push);
  };
  const absl::Duration limit =
      wait == Wait::kWait ? kStepWait : absl::ZeroDuration();
  if (exchange.ok() && !(*exchange)->Await(may_feed, limit)) {
    {
      base::SteadyMutexLock lock(&state_->mu);
      state_->fed.Stop();
      state_->wants_thread = true;
    }
    return state_->EndTracked();
  }
  if (!entry->pushes.empty()) {
    if (exchange.ok()) {
      FeedPush(entry, *exchange);
      // Applies a small step here, as a server without replicas does, because
      // waking the server's thread takes longer.
      return server->Help();
    }
    OnPushFed(entry, exchange.status());
  } else if (entry->joins.has_value()) {
    OnJoinFed(entry, server->Join(view, *entry->joins));
  } else {
    FeedEvent(entry, server.get());
  }
}

void Feeder::FeedPush(const EntryPtr& entry,
                      const std::shared_ptr<Exchange>& exchange) {
  const replication::WorkerPush& push = entry->pushes.front();
  absl::optional<CheckedGradients> checked = calls_->TakeChecked(entry->seq);
  if (!checked.has_value()) {
    const auto& payload = static_cast<const PushPayload&>(*entry->payload);
    auto again = exchange->Check(push.worker, push.clock, payload.gradients());
    if (!again.ok()) return OnPushFed(entry, again.status());
    if (again->repeated.has_value()) return OnPushFed(entry, *again->repeated);
    checked = CheckedGradients{exchange, std::move(again->push)};
  }
  checked->exchange->Take(
      kFeedTickets | entry->seq, std::move(checked->push),
      [self = shared_from_this(),
       entry](const absl::StatusOr<Exchange::PushVerdict>& is) {
        self->OnPushFed(entry, is);
      },
      /*will_help=*/true);
}

void Feeder::OnPushFed(const EntryPtr& entry,
                       const absl::StatusOr<Exchange::PushVerdict>& verdict) {
  PushCallPtr call;
  uint64_t reign = 0;
  {
    base::SteadyMutexLock lock(&state_->mu);
    reign = state_->reign;
    const bool leaves = !verdict.ok() && state_->LeavesToBackup();
    if (leaves || (!state_->failure.ok() && state_->primary() == nullptr)) {
      state_->fed.Stop();
    } else if (ComesAgain(verdict.status()) && state_->failure.ok()) {
      state_->fed.Stop();
      retry_ = BootNow() + kFeedAgain;
    } else {
      call = state_->logged.TakePush(entry->seq);
      EndLocked(*entry,
                verdict.ok() && *verdict == Exchange::PushVerdict::kCounted);
    }
  }
  if (call != nullptr) calls_->AnswerPush(reign, call->ticket, verdict);
  state_->Pump();
  state_->EndTracked();
}

void Feeder::OnJoinFed(const EntryPtr& entry,
                       absl::StatusOr<Exchange::Joined> joined) {
  uint64_t reign = 0;
  uint64_t ticket = 0;
  {
    base::SteadyMutexLock lock(&state_->mu);
    reign = state_->reign;
    ticket = state_->logged.TakeJoin(entry->seq);
    if (joined.ok()) {
      joined->lease = state_->options.worker_lease;
      if (state_->primary() != nullptr) {
        state_->leases.Note(*entry->joins, RunningNow());
      }
    }
    EndLocked(*entry, false);
  }
  if (ticket != 0) calls_->AnswerJoin(reign, ticket, joined);
  state_->Pump();
  state_->EndTracked();
}

void Feeder::FeedEvent(const EntryPtr& entry, Server* server) {
  const auto& event = static_cast<const EventPayload&>(*entry->payload);
  const uint64_t run = state_->group.run;
  const auto exchange = server->Serving(training_view());
  switch (event.kind()) {
    case EventPayload::Kind::kHeartbeat:
      server->Heartbeat(run, event.worker()).IgnoreError();
      break;
    case EventPayload::Kind::kLeave:
      server->Leave(event.worker(), run);
      break;
    case EventPayload::Kind::kLost:
      server->Lost(event.worker(), run);
      break;
    case EventPayload::Kind::kStart:
      if (!exchange.ok()) break;
      (*exchange)->Carry([](Coordinator* all) { return all->Start(); });
      break;
    case EventPayload::Kind::kCut:
      if (!exchange.ok()) break;
      (*exchange)->Carry(
          [&event](Coordinator* all) { return all->Forgo(event.cut()); });
      break;
  }
  {
    base::SteadyMutexLock lock(&state_->mu);
    EndLocked(*entry, false);
  }
  state_->Pump();
  state_->EndTracked();
}

void Feeder::EndLocked(const replication::Entry& entry, bool has_counted) {
  if (state_->fed.End(entry, has_counted, MembersLocked())) {
    state_->replica.Applied();
  }
}

void Feeder::PollApplied() {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->fed.all_applied() || state_->fed.is_held()) return;
  const auto clocks = state_->server->AppliedClocks(state_->training_view);
  if (clocks.ok()) state_->Advance(*clocks);
}

}  // namespace penstock::ps
