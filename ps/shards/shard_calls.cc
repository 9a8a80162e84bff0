// The calls of workers at a replica.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/shard.h"

namespace penstock::ps {

uint64_t Shard::AddTicketLocked(Ticket ticket) {
  const uint64_t id = next_ticket_++;
  if (ticket.push) {
    ticket.end = [push = ticket.push](absl::Status why) { push(why); };
  } else if (ticket.pull) {
    ticket.end = [pull = ticket.pull](absl::Status why) { pull(why); };
  } else {
    ticket.end = [join = ticket.join](absl::Status why) { join(why); };
  }
  tickets_.emplace(id, std::move(ticket));
  return id;
}

absl::optional<Shard::Ticket> Shard::TakeTicket(uint64_t ticket) {
  absl::MutexLock lock(&mu_);
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return absl::nullopt;
  absl::optional<Ticket> taken = std::move(found->second);
  tickets_.erase(found);
  return taken;
}

void Shard::EndTicket(uint64_t ticket, const absl::Status& status) {
  {
    // Parked work may hold gradients.
    absl::MutexLock lock(&mu_);
    parked_.erase(std::remove_if(parked_.begin(), parked_.end(),
                                 [ticket](const Parked& each) {
                                   return each.ticket == ticket;
                                 }),
                  parked_.end());
  }
  const absl::optional<Ticket> call = TakeTicket(ticket);
  if (!call.has_value()) return;
  call->end(status);
  if (call->server != nullptr) call->server->Cancel(call->inner);
}

void Shard::Cancel(uint64_t ticket) {
  EndTicket(ticket, absl::CancelledError("the caller has given up"));
}

void Shard::AnswerWhenSure(uint64_t reign, uint64_t ticket,
                           std::function<void()> go) {
  {
    absl::MutexLock lock(&mu_);
    replication::Primary* const leads = primary();
    if (leads == nullptr || reign != reign_) return;  // the call has ended
    if (!leads->MayAnswer(BootNow())) {
      parked_.push_back({0, true, ticket, std::move(go)});
      return;
    }
  }
  go();
}

void Shard::NoteAliveLocked(const WorkerId& worker) {
  if (primary() == nullptr || !knows_members_) return;
  const absl::Time now = BootNow();
  if (alive_.empty()) start_at_ = now + options_.assemble_timeout;
  alive_[{worker.rank, worker.incarnation}] = now;
}

uint64_t Shard::StartJoin(const View& view, const WorkerId& worker,
                          JoinCallback callback) {
  uint64_t id = 0;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    replication::Primary* const leads = primary();
    if (leads == nullptr) {
      status = NotPrimaryLocked();
    } else if (worker.rank >= kMaxRanks) {
      status = absl::InvalidArgumentError("join: the rank is out of bounds");
    } else {
      status = server_->TrainingOf(view).status();
    }
    if (status.ok()) {
      const auto seq = leads->Join(worker, BootNow());
      status = seq.status();
      if (status.ok()) {
        Ticket ticket;
        ticket.join = callback;
        id = joins_[*seq] = AddTicketLocked(std::move(ticket));
      }
    }
  }
  if (!status.ok()) {
    callback(status);
    return 0;
  }
  Pump();
  return id;
}

absl::Status Shard::Heartbeat(uint64_t run, const WorkerId& worker) {
  absl::Status member;
  {
    absl::MutexLock lock(&mu_);
    if (primary() == nullptr) return NotPrimaryLocked();
    if (run != group_.run) return OtherRun(run, group_.run);
    if (fed_ < inherited_) return absl::OkStatus();
    const auto alive = alive_.find({worker.rank, worker.incarnation});
    if (alive != alive_.end()) alive->second = BootNow();
    const auto exchange = server_->Serving(training_view_);
    member = exchange.ok() ? (*exchange)->CheckMember(worker, "heartbeat")
                           : exchange.status();
  }
  // Only an entry makes the worker a member again. The next heartbeat finds out
  // if it did.
  if (!absl::IsFailedPrecondition(member)) return member;
  Submit(EventPayload::Kind::kHeartbeat, worker, run);
  return absl::OkStatus();
}

void Shard::Leave(const WorkerId& worker, uint64_t run) {
  Submit(EventPayload::Kind::kLeave, worker, run);
}

void Shard::Lost(const WorkerId& worker, uint64_t run) {
  Submit(EventPayload::Kind::kLost, worker, run);
}

void Shard::Submit(EventPayload::Kind kind, const WorkerId& worker,
                   uint64_t run) {
  {
    absl::MutexLock lock(&mu_);
    if (primary() == nullptr || (run != 0 && run != group_.run)) return;
    const bool is_logged = SubmitLocked(kind, worker);
    if (kind == EventPayload::Kind::kHeartbeat) {
      NoteAliveLocked(worker);
    } else if (is_logged) {
      alive_.erase({worker.rank, worker.incarnation});
    }
  }
  Pump();
}

bool Shard::SubmitLocked(EventPayload::Kind kind, const WorkerId& worker) {
  const auto seq = primary()->Accept(
      {}, std::make_shared<EventPayload>(kind, worker), BootNow());
  if (!seq.ok()) Say(std::string(seq.status().message()));
  return seq.ok();
}

uint64_t Shard::Push(const View& view, const WorkerId& worker, uint64_t clock,
                     const tensor::Bundle& gradients, PushCallback callback,
                     bool will_help) {
  (void)will_help;
  auto call = std::make_shared<PushCall>();
  call->view = view;
  call->worker = worker;
  call->clock = clock;
  call->gradients = gradients;
  absl::Status status;
  uint64_t reign = 0;
  bool waits = false;
  {
    absl::MutexLock lock(&mu_);
    reign = reign_;
    if (primary() == nullptr) {
      status = NotPrimaryLocked();
    } else {
      const auto alive = alive_.find({worker.rank, worker.incarnation});
      if (alive != alive_.end()) alive->second = BootNow();
      Ticket ticket;
      ticket.push = callback;
      call->ticket = AddTicketLocked(std::move(ticket));
      waits = fed_ < inherited_;
      if (waits) {
        parked_.push_back({inherited_, false, call->ticket,
                           [this, call, reign] { CheckPush(call, reign); }});
      }
    }
  }
  if (!status.ok()) {
    callback(status);
    return 0;
  }
  if (!waits) CheckPush(call, reign);
  return call->ticket;
}

// Checks the gradients without a lock.
void Shard::CheckPush(const PushCallPtr& call, uint64_t reign) {
  std::shared_ptr<Server> server;
  {
    absl::MutexLock lock(&mu_);
    if (reign != reign_ || primary() == nullptr) return;
    server = server_;
  }
  const auto exchange = server->Serving(call->view);
  absl::StatusOr<Exchange::Checked> checked =
      exchange.ok()
          ? (*exchange)->Check(call->worker, call->clock, call->gradients)
          : exchange.status();
  if (checked.ok() && !checked->repeated.has_value()) {
    call->held_bytes = checked->push.held_bytes;
    call->checked = Checked{*exchange, std::move(checked->push)};
    return AcceptPush(call, reign);
  }
  absl::StatusOr<Exchange::PushVerdict> verdict = Exchange::PushVerdict::kLate;
  if (checked.ok()) {
    verdict = *checked->repeated;
  } else {
    verdict = checked.status();
    absl::MutexLock lock(&mu_);
    if (LeavesToBackupLocked()) return;  // the end of the reign answers
  }
  AnswerWhenSure(reign, call->ticket,
                 [this, call, verdict] { AnswerPush(call->ticket, verdict); });
}

void Shard::AcceptPush(const PushCallPtr& call, uint64_t reign) {
  const PushKey key{{call->worker.rank, call->worker.incarnation}, call->clock};
  size_t pending = 0;
  {
    absl::MutexLock lock(&mu_);
    if (reign != reign_ || primary() == nullptr) return;
    pending = checked_bytes_;
  }
  absl::Status status =
      call->checked->exchange->CheckTakes(call->checked->push, pending);
  {
    absl::MutexLock lock(&mu_);
    if (reign != reign_ || primary() == nullptr) return;
    const auto in_log = in_log_.find(key);
    if (in_log != in_log_.end()) {
      // A copy of the push is under way. The server then knows the verdict.
      call->checked.reset();
      parked_.push_back({in_log->second, false, call->ticket,
                         [this, call, reign] { CheckPush(call, reign); }});
      return;
    }
    if (status.ok()) {
      const auto seq = primary()->Accept(
          {{call->worker, call->clock}},
          std::make_shared<PushPayload>(std::move(call->gradients)), BootNow());
      status = seq.status();
      if (seq.ok()) {
        pushes_[*seq] = call;
        in_log_[key] = *seq;
        checked_bytes_ += call->held_bytes;
      }
    }
  }
  if (status.ok()) return Pump();
  AnswerWhenSure(reign, call->ticket,
                 [this, call, status] { AnswerPush(call->ticket, status); });
}

void Shard::AnswerPush(uint64_t ticket,
                       absl::StatusOr<Exchange::PushVerdict> verdict) {
  const absl::optional<Ticket> call = TakeTicket(ticket);
  if (call.has_value()) call->push(verdict);
}

uint64_t Shard::Pull(const View& view, const Exchange::PullSpec& spec,
                     PullCallback callback) {
  absl::Status status;
  uint64_t reign = 0;
  uint64_t id = 0;
  bool waits = false;
  {
    absl::MutexLock lock(&mu_);
    reign = reign_;
    if (primary() == nullptr) {
      status = NotPrimaryLocked();
    } else {
      if (spec.worker.has_value()) {
        const auto alive =
            alive_.find({spec.worker->rank, spec.worker->incarnation});
        if (alive != alive_.end()) alive->second = BootNow();
      }
      Ticket ticket;
      ticket.pull = callback;
      id = AddTicketLocked(std::move(ticket));
      waits = fed_ < inherited_;
      if (waits) {
        parked_.push_back(
            {inherited_, false, id, [this, id, view, spec, reign] {
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

void Shard::OnPulled(uint64_t ticket, uint64_t reign,
                     absl::StatusOr<Exchange::Pulled> pulled) {
  if (!pulled.ok()) {
    absl::MutexLock lock(&mu_);
    if (LeavesToBackupLocked()) return;  // the end of the reign answers
  }
  auto result =
      std::make_shared<absl::StatusOr<Exchange::Pulled>>(std::move(pulled));
  AnswerWhenSure(reign, ticket, [this, ticket, result] {
    const absl::optional<Ticket> call = TakeTicket(ticket);
    if (call.has_value()) call->pull(std::move(*result));
  });
}

void Shard::StartPull(uint64_t ticket, const View& view,
                      const Exchange::PullSpec& spec, uint64_t reign) {
  std::shared_ptr<Server> server;
  {
    absl::MutexLock lock(&mu_);
    if (reign != reign_ || primary() == nullptr) return;
    server = server_;
    ++tracked_;
  }
  const uint64_t inner =
      server->Pull(view, spec,
                   [this, self = shared_from_this(), ticket,
                    reign](absl::StatusOr<Exchange::Pulled> pulled) {
                     OnPulled(ticket, reign, std::move(pulled));
                     EndTracked();
                   });
  bool has_ended = false;
  {
    absl::MutexLock lock(&mu_);
    const auto found = tickets_.find(ticket);
    has_ended = found == tickets_.end();
    if (!has_ended) {
      found->second.server = server;
      found->second.inner = inner;
    }
  }
  // Harmless if the pull was answered.
  if (has_ended) server->Cancel(inner);
}

}  // namespace penstock::ps
