#include "ps/shards/worker_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/server/running_time.h"
#include "ps/shards/boot_time.h"
#include "ps/wire/shard_key.h"

namespace penstock::ps {
namespace {

// The interval at which a full log, which has no room for the events of
// workers, is logged.
constexpr absl::Duration kSayEvery = absl::Minutes(1);

}  // namespace

WorkerCalls::WorkerCalls(std::shared_ptr<ReplicaState> state)
    : state_(std::move(state)), refusals_(kSayEvery) {}

absl::optional<Tickets::Ticket> WorkerCalls::TakeTicket(uint64_t ticket) {
  base::SteadyMutexLock lock(&state_->mu);
  return state_->tickets.Take(ticket);
}

void WorkerCalls::Cancel(uint64_t ticket) {
  absl::optional<Tickets::Ticket> call;
  {
    base::SteadyMutexLock lock(&state_->mu);
    state_->tickets.ForgetParked(ticket);
    state_->gate.Forget(ticket);
    call = state_->tickets.Take(ticket);
  }
  if (!call.has_value()) return;
  call->End(absl::CancelledError("the caller has cancelled"));
}

void WorkerCalls::LeaveLocked(ReplicaState::Due* due) {
  const absl::Status refusal = absl::UnavailableError(absl::StrCat(
      kNotPrimary,
      ": its training has failed, and a backup has to take over. If "
      "none does, restart all servers from a checkpoint. The failure: ",
      state_->failure.message()));
  state_->gate.GiveUp();
  for (Tickets::Ticket& each : state_->tickets.TakeAll()) {
    due->push_back(
        [ticket = std::move(each), refusal] { ticket.End(refusal); });
  }
}

void WorkerCalls::Collect(absl::Time now, ReplicaState::Due* due) {
  base::SteadyMutexLock lock(&state_->mu);
  replication::Primary* const leads = state_->primary();
  if (leads == nullptr) return;
  leads->Tick(now);
  if (!state_->failure.ok() && state_->LeavesToBackup()) {
    return LeaveLocked(due);
  }
  for (auto& go_on : state_->gate.TakeDue(now)) {
    due->push_back(std::move(go_on));
  }
  for (Tickets::Parked& each :
       state_->tickets.TakeDue(state_->fed.last(), leads->MayAnswer(now))) {
    if (!each.is_answer) {
      due->push_back(std::move(each.go));
      continue;
    }
    // Checks again immediately before the answer, because a lease may have
    // ended since.
    due->push_back(
        [this, reign = state_->reign, ticket = each.ticket,
         go = std::move(each.go)] { AnswerWhenSure(reign, ticket, go); });
  }
}

void WorkerCalls::AnswerWhenSure(uint64_t reign, uint64_t ticket,
                                 std::function<void()> go) {
  {
    base::SteadyMutexLock lock(&state_->mu);
    replication::Primary* const leads = state_->primary();
    if (leads == nullptr || reign != state_->reign)
      return;  // the call has ended already
    if (!leads->MayAnswer(BootNow())) {
      state_->tickets.Park({0, true, ticket, std::move(go)});
      return;
    }
  }
  go();
}

void WorkerCalls::AnswerPush(uint64_t reign, uint64_t ticket,
                             absl::StatusOr<Exchange::PushVerdict> verdict) {
  AnswerWhenSure(reign, ticket, [this, ticket, verdict = std::move(verdict)] {
    const absl::optional<Tickets::Ticket> call = TakeTicket(ticket);
    if (call.has_value()) call->push(verdict);
  });
}

void WorkerCalls::AnswerJoin(uint64_t reign, uint64_t ticket,
                             absl::StatusOr<Exchange::Joined> joined) {
  AnswerWhenSure(reign, ticket, [this, ticket, joined = std::move(joined)] {
    const absl::optional<Tickets::Ticket> call = TakeTicket(ticket);
    if (call.has_value()) call->join(joined);
  });
}

void WorkerCalls::ExpireWorkers() {
  const absl::Time now = RunningNow();
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->primary() == nullptr || state_->server == nullptr ||
      state_->fed.last() < state_->inherited) {
    return;
  }
  WorkerLeases& leases = state_->leases;
  if (!leases.knows_members()) {
    const auto exchange = state_->server->Serving(state_->training_view);
    if (!exchange.ok()) return;
    leases.Learn((*exchange)->Members(), now);
  }
  if (leases.StartIsDue(now) && SubmitLocked(EventPayload::Kind::kStart, {})) {
    leases.RecordStart();
  }
  for (const WorkerId& worker : leases.Silent(now)) {
    if (SubmitLocked(EventPayload::Kind::kLost, worker)) leases.Remove(worker);
  }
}

uint64_t WorkerCalls::StartJoin(const View& view, const WorkerId& worker,
                                JoinCallback callback) {
  uint64_t id = 0;
  absl::Status status;
  {
    base::SteadyMutexLock lock(&state_->mu);
    replication::Primary* const leads = state_->primary();
    if (leads == nullptr) {
      status = state_->NotPrimary();
    } else if (worker.rank >= kMaxRanks) {
      status = absl::InvalidArgumentError("join: the rank is out of bounds");
    } else {
      status = state_->server->TrainingOf(view).status();
    }
    if (status.ok()) {
      const auto seq = leads->Join(worker, BootNow());
      status = seq.status();
      if (status.ok()) {
        id = state_->tickets.AddJoin(callback);
        state_->logged.AddJoin(*seq, id);
      }
    }
  }
  if (!status.ok()) {
    callback(status);
    return 0;
  }
  state_->Pump();
  return id;
}

absl::Status WorkerCalls::Heartbeat(uint64_t run, const WorkerId& worker) {
  absl::Status member;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (state_->primary() == nullptr) return state_->NotPrimary();
    if (run != state_->group.run) return OtherRun(run, state_->group.run);
    if (state_->fed.last() < state_->inherited) return absl::OkStatus();
    state_->leases.Renew(worker, RunningNow());
    const auto exchange = state_->server->Serving(state_->training_view);
    member = exchange.ok() ? (*exchange)->CheckMember(worker, "heartbeat")
                           : exchange.status();
  }
  // Requests an entry that makes the worker a member again. The next heartbeat
  // shows if the entry was fed.
  if (!absl::IsFailedPrecondition(member)) return member;
  Submit(EventPayload::Kind::kHeartbeat, worker, run);
  return absl::OkStatus();
}

void WorkerCalls::Leave(const WorkerId& worker, uint64_t run) {
  Submit(EventPayload::Kind::kLeave, worker, run);
}

void WorkerCalls::Lost(const WorkerId& worker, uint64_t run) {
  Submit(EventPayload::Kind::kLost, worker, run);
}

void WorkerCalls::Submit(EventPayload::Kind kind, const WorkerId& worker,
                         uint64_t run) {
  {
    base::SteadyMutexLock lock(&state_->mu);
    const bool is_ours = run == 0 || run == state_->group.run;
    if (state_->primary() == nullptr || !is_ours) return;
    const bool is_logged = SubmitLocked(kind, worker);
    if (kind == EventPayload::Kind::kHeartbeat) {
      state_->leases.Note(worker, RunningNow());
    } else if (is_logged) {
      state_->leases.Remove(worker);
    }
  }
  state_->Pump();
}

bool WorkerCalls::SubmitLocked(EventPayload::Kind kind,
                               const WorkerId& worker) {
  const auto seq = state_->primary()->Accept(
      {}, std::make_shared<EventPayload>(kind, worker), BootNow());
  if (!seq.ok() && refusals_.IsNews("a full log", BootNow())) {
    state_->Say(std::string(seq.status().message()));
  }
  return seq.ok();
}

absl::optional<CheckedGradients> WorkerCalls::TakeChecked(uint64_t seq) {
  base::SteadyMutexLock lock(&state_->mu);
  return state_->logged.TakeChecked(seq);
}

uint64_t WorkerCalls::Pull(const View& view, const Exchange::PullSpec& spec,
                           PullCallback callback) {
  absl::Status status;
  uint64_t reign = 0;
  uint64_t id = 0;
  bool waits = false;
  {
    base::SteadyMutexLock lock(&state_->mu);
    reign = state_->reign;
    if (state_->primary() == nullptr) {
      status = state_->NotPrimary();
    } else {
      if (spec.worker.has_value()) {
        state_->leases.Renew(*spec.worker, RunningNow());
      }
      id = state_->tickets.AddPull(callback);
      waits = state_->fed.last() < state_->inherited;
      if (waits) {
        state_->tickets.Park(
            {state_->inherited, false, id, [this, id, view, spec, reign] {
               StartPull(id, view, spec, reign);
             }});
      }
    }
  }
  if (!status.ok()) {
    callback(status);
    return 0;
  }
  if (!waits) StartPull(id, view, spec, reign);
  return id;
}

void WorkerCalls::StartPull(uint64_t ticket, const View& view,
                            const Exchange::PullSpec& spec, uint64_t reign) {
  std::shared_ptr<Server> server;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (reign != state_->reign || state_->primary() == nullptr) return;
    server = state_->server;
    ++state_->tracked;
  }
  const uint64_t inner =
      server->Pull(view, spec,
                   [self = shared_from_this(), ticket,
                    reign](absl::StatusOr<Exchange::Pulled> pulled) {
                     self->OnPulled(ticket, reign, std::move(pulled));
                     self->state_->EndTracked();
                   });
  bool waits = false;
  {
    base::SteadyMutexLock lock(&state_->mu);
    waits = state_->tickets.SetInner(ticket, server, inner);
  }
  // Cancels the pull at the server, which is harmless if the pull was already
  // answered.
  if (!waits) server->Cancel(inner);
}

void WorkerCalls::OnPulled(uint64_t ticket, uint64_t reign,
                           absl::StatusOr<Exchange::Pulled> pulled) {
  if (!pulled.ok()) {
    base::SteadyMutexLock lock(&state_->mu);
    if (state_->LeavesToBackup()) {
      state_->wants_pump = true;  // Collect() ends the call
      return;
    }
  }
  auto result =
      std::make_shared<absl::StatusOr<Exchange::Pulled>>(std::move(pulled));
  AnswerWhenSure(reign, ticket, [this, ticket, result] {
    const absl::optional<Tickets::Ticket> call = TakeTicket(ticket);
    if (call.has_value()) call->pull(std::move(*result));
  });
}

}  // namespace penstock::ps
