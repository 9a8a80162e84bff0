// The path of a worker's push into the log.

#include <utility>
#include <vector>

#include "ps/server/running_time.h"
#include "ps/shards/boot_time.h"
#include "ps/shards/worker_calls.h"

namespace penstock::ps {

uint64_t WorkerCalls::Push(const View& view, const WorkerId& worker,
                           uint64_t clock, const tensor::Bundle& gradients,
                           PushCallback callback, bool will_help) {
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
    base::SteadyMutexLock lock(&state_->mu);
    reign = state_->reign;
    if (state_->primary() == nullptr) {
      status = state_->NotPrimary();
    } else {
      state_->leases.Renew(worker, RunningNow());
      call->ticket = state_->tickets.AddPush(callback);
      waits = state_->fed.last() < state_->inherited;
      if (waits) {
        state_->tickets.Park({state_->inherited, false, call->ticket,
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

// Checks the gradients, without holding the lock.
void WorkerCalls::CheckPush(const PushCallPtr& call, uint64_t reign) {
  std::shared_ptr<Server> server;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (reign != state_->reign || state_->primary() == nullptr) return;
    server = state_->server;
  }
  const auto exchange = server->Serving(call->view);
  absl::StatusOr<Exchange::Checked> checked =
      exchange.ok()
          ? (*exchange)->Check(call->worker, call->clock, call->gradients)
          : exchange.status();
  if (checked.ok() && !checked->repeated.has_value()) {
    call->held_bytes = checked->push.held_bytes;
    call->checked = CheckedGradients{*exchange, std::move(checked->push)};
    return AcceptPush(call, reign);
  }
  absl::StatusOr<Exchange::PushVerdict> verdict = Exchange::PushVerdict::kLate;
  if (checked.ok()) {
    verdict = *checked->repeated;
  } else {
    verdict = checked.status();
    base::SteadyMutexLock lock(&state_->mu);
    if (state_->LeavesToBackup()) {
      state_->wants_pump = true;  // Collect() ends the call
      return;
    }
  }
  AnswerPush(reign, call->ticket, verdict);
}

void WorkerCalls::AcceptPush(const PushCallPtr& call, uint64_t reign) {
  uint64_t entering = 0;
  {
    base::SteadyMutexLock lock(&state_->mu);
    entering = state_->entering.Enter(call->held_bytes);
  }
  absl::optional<absl::Status> status = FindRoom(call, reign, entering);
  {
    base::SteadyMutexLock lock(&state_->mu);
    state_->entering.Leave(entering);
    status = EnterLocked(call, reign, *std::move(status));
  }
  if (!status.has_value()) return;
  if (status->ok()) return state_->Work();
  AnswerPush(reign, call->ticket, *status);
}

absl::optional<absl::Status> WorkerCalls::EnterLocked(const PushCallPtr& call,
                                                      uint64_t reign,
                                                      absl::Status status) {
  if (reign != state_->reign || state_->primary() == nullptr) {
    return absl::nullopt;
  }
  const absl::optional<uint64_t> copy = state_->logged.EntryOf(*call);
  if (copy.has_value()) {
    // Waits for the entry of an earlier copy of this push, after which the
    // server knows the verdict.
    call->checked.reset();
    state_->tickets.Park({*copy, false, call->ticket,
                          [this, call, reign] { CheckPush(call, reign); }});
    return absl::nullopt;
  }
  if (!status.ok()) return status;
  const PushId id{call->worker.rank, call->clock};
  if (!state_->gate.LetsThrough(id)) {
    state_->gate.Keep(call->ticket, id, call->held_bytes,
                      [this, call, reign] { AcceptPush(call, reign); });
    return absl::nullopt;
  }
  const auto seq = state_->primary()->Accept(
      {{call->worker, call->clock}},
      std::make_shared<PushPayload>(std::move(call->gradients)), BootNow());
  if (seq.ok()) state_->logged.AddPush(*seq, call);
  return seq.status();
}

absl::Status WorkerCalls::FindRoom(const PushCallPtr& call, uint64_t reign,
                                   uint64_t entering) {
  absl::Status status = CheckRoom(call, reign, entering);
  if (absl::IsResourceExhausted(status) && MakeRoom(call, reign)) {
    status = CheckRoom(call, reign, entering);
  }
  return status;
}

absl::Status WorkerCalls::CheckRoom(const PushCallPtr& call, uint64_t reign,
                                    uint64_t entering) {
  size_t pending = 0;
  {
    base::SteadyMutexLock lock(&state_->mu);
    if (reign != state_->reign) return state_->NotPrimary();
    pending = state_->logged.checked_bytes() + state_->gate.bytes() +
              state_->entering.BytesBefore(entering);
  }
  return call->checked->exchange->CheckTakes(call->checked->push, pending);
}

bool WorkerCalls::MakeRoom(const PushCallPtr& call, uint64_t reign) {
  std::vector<uint64_t> given_up;
  {
    base::SteadyMutexLock lock(&state_->mu);
    const bool is_in_cut =
        state_->gate.LetsThrough({call->worker.rank, call->clock});
    if (reign != state_->reign || !is_in_cut) return false;
    given_up = state_->gate.GiveUp();
  }
  for (const uint64_t ticket : given_up) {
    AnswerPush(
        reign, ticket,
        absl::ResourceExhaustedError(
            "a checkpoint needs the room of this push: try again later, or "
            "raise the server's --held-gradients"));
  }
  return !given_up.empty();
}

}  // namespace penstock::ps
