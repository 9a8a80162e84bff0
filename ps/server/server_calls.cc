// Pushes and pulls: taken, held, answered.

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/server/server.h"

namespace penstock::ps {

using base::SteadyNow;
using Verdict = Coordinator::Verdict;

namespace {

size_t SizeOf(const Selection& selection) {
  size_t bytes = selection.parts.size() * sizeof(size_t);
  for (const Selection::Rows& rows : selection.rows) {
    bytes += sizeof(rows) + rows.ids.size() * sizeof(uint64_t);
  }
  return bytes;
}

}  // namespace

// A push whose step is over is known by its clock, before anything is looked at
// that it may have filled itself.
absl::optional<Server::PushVerdict> Server::VerdictOnRepeatedLocked(
    const WorkerId& worker, uint64_t clock) const {
  const Membership& members = coordinator_->membership();
  if (!members.IsMember(worker) || clock >= members.ClockOf(worker.rank)) {
    return absl::nullopt;
  }
  const auto last = last_counted_.find(worker.rank);
  const bool has_counted =
      last != last_counted_.end() &&
      last->second.worker.incarnation == worker.incarnation &&
      clock <= last->second.clock;
  return has_counted ? PushVerdict::kDuplicate : PushVerdict::kLate;
}

absl::Status Server::CheckRoomLocked(size_t bytes) const {
  const size_t most = options_.max_held_bytes;
  if (bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its gradients take ", bytes, " bytes, and the server may hold ", most,
        ": push less in a step, or raise its --held-gradients"));
  }
  const size_t held = held_.bytes() + pending_bytes_;
  if (held <= most - bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the server holds ", held,
                   " bytes of gradients that are not applied, of ", most,
                   ": come again, or raise its --held-gradients"));
}

void Server::TakePushLocked(uint64_t ticket, PendingPush* push, Due* due) {
  const WorkerId worker = push->worker;
  const uint64_t clock = push->id.clock;
  const bool will_help = push->will_help;
  pending_bytes_ += push->held_bytes;
  pending_pushes_[ticket] = std::move(*push);
  HandleLocked(coordinator_->Push(ticket, worker, clock, SteadyNow()), due,
               will_help);
}

void Server::RefusePush(const PendingPush& push, const absl::Status& why) {
  const std::string refusal =
      absl::StrCat("push of worker ", push.worker.rank, " for step ",
                   push.id.clock, " refused: ", why.message());
  Log({refusal});
  push.callback(absl::Status(why.code(), refusal));
}

uint64_t Server::Push(const View& view, const WorkerId& worker, uint64_t clock,
                      const tensor::Bundle& bundle, PushCallback callback,
                      bool will_help) {
  absl::StatusOr<std::shared_ptr<Training>> training;
  absl::optional<PushVerdict> repeated;
  uint64_t ticket = 0;
  {
    absl::MutexLock lock(&mu_);
    ticket = next_ticket_++;
    training = ServingLocked(view);
    if (training.ok()) repeated = VerdictOnRepeatedLocked(worker, clock);
    if (repeated.has_value()) ++counts_.not_counted;
  }
  if (repeated.has_value()) {
    callback(*repeated);
    return ticket;
  }
  if (!training.ok()) {
    callback(training.status());
    return ticket;
  }
  PendingPush push;
  push.worker = worker;
  push.id = {worker.rank, clock};
  push.callback = std::move(callback);
  push.will_help = will_help;
  auto gradients = (*training)->tables->Check(bundle, RowNow());
  absl::Status status = gradients.status();
  if (status.ok()) {
    push.held_bytes = gradients->held_bytes();
    push.gradients = *std::move(gradients);
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (status.ok()) status = CheckRoomLocked(push.held_bytes);
    if (status.ok()) {
      TakePushLocked(ticket, &push, &due);
    } else {
      ++counts_.refused;
    }
  }
  if (!status.ok()) RefusePush(push, status);
  Run(due);
  return ticket;
}

uint64_t Server::Pull(const View& view, const PullSpec& spec,
                      PullCallback callback) {
  absl::StatusOr<std::shared_ptr<Training>> training;
  uint64_t ticket = 0;
  {
    absl::MutexLock lock(&mu_);
    ticket = next_ticket_++;
    training = ServingLocked(view);
  }
  if (!training.ok()) {
    callback(training.status());
    return ticket;
  }
  auto selection =
      (*training)->tables->Select(spec.ids, spec.parts, spec.all_parts);
  if (!selection.ok()) {
    callback(selection.status());
    return ticket;
  }
  selection->dtype = spec.dtype;
  const std::vector<size_t> policies =
      (*training)->tables->PoliciesOf(*selection);
  Due due;
  {
    absl::MutexLock lock(&mu_);
    const size_t bytes = SizeOf(*selection);
    waiting_bytes_ += bytes;
    pending_pulls_[ticket] = {spec.worker, *std::move(selection), bytes,
                              std::move(callback)};
    HandleLocked(coordinator_->Pull(ticket, spec.worker, spec.clock, policies,
                                    SteadyNow()),
                 &due);
    BoundPullsLocked(ticket, &due);
  }
  Run(due);
  return ticket;
}

Server::PendingPull Server::TakePullLocked(
    std::map<uint64_t, PendingPull>::iterator pull) {
  PendingPull taken = std::move(pull->second);
  waiting_bytes_ -= taken.bytes;
  pending_pulls_.erase(pull);
  return taken;
}

void Server::BoundPullsLocked(uint64_t ticket, Due* due) {
  const auto pull = pending_pulls_.find(ticket);
  if (pull == pending_pulls_.end()) return;
  const size_t others = pending_pulls_.size() - 1;
  if (others < options_.max_waiting_calls &&
      waiting_bytes_ <= options_.max_waiting_bytes) {
    return;
  }
  coordinator_->Cancel(ticket);
  auto refused = std::make_shared<PendingPull>(TakePullLocked(pull));
  due->push_back([refused, others] { refused->callback(TooManyWait(others)); });
}

void Server::HandleLocked(Outcome outcome, Due* due, bool will_help) {
  if (!outcome.notes.empty()) {
    due->push_back([this, notes = std::move(outcome.notes)] { Log(notes); });
  }
  for (const Coordinator::Answer& answer : outcome.answers) {
    if (auto push = pending_pushes_.find(answer.ticket);
        push != pending_pushes_.end()) {
      PendingPush pending = std::move(push->second);
      pending_pushes_.erase(push);
      AnswerPushLocked(std::move(pending), answer, due);
    } else if (auto pull = pending_pulls_.find(answer.ticket);
               pull != pending_pulls_.end()) {
      AnswerPullLocked(TakePullLocked(pull), answer, due);
    }
  }
  if (!outcome.applies.empty()) {
    if (!will_help || !CanBeHelpedLocked()) {
      help_ends_ = absl::InfinitePast();
    } else if (applies_.empty()) {
      help_ends_ = SteadyNow() + kHelpLimit;
    }
  }
  for (Coordinator::Apply& apply : outcome.applies) {
    applies_.push_back(std::move(apply));
  }
  WakeThreadLocked();
}

void Server::AnswerPushLocked(PendingPush push,
                              const Coordinator::Answer& answer, Due* due) {
  pending_bytes_ -= push.held_bytes;
  absl::StatusOr<PushVerdict> result = PushVerdict::kCounted;
  const absl::Status status = StatusOfLocked(
      push.worker, absl::StrCat("push for step ", push.id.clock), answer);
  if (!status.ok()) {
    ++counts_.refused;
    result = status;
  } else if (answer.verdict == Verdict::kAccepted) {
    ++counts_.counted;
    last_counted_[push.id.rank] = {push.worker, push.id.clock};
    held_.Keep(push.id, std::move(push.gradients), answer.counted);
  } else {
    ++counts_.not_counted;
    result = VerdictOnRepeatedLocked(push.worker, push.id.clock)
                 .value_or(PushVerdict::kLate);
  }
  // What is not kept is destroyed without the lock.
  auto dropped = std::make_shared<Gradients>(std::move(push.gradients));
  due->push_back([callback = std::move(push.callback), result,
                  dropped = std::move(dropped)] { callback(result); });
}

void Server::AnswerPullLocked(PendingPull pull,
                              const Coordinator::Answer& answer, Due* due) {
  absl::Status status = StatusOfLocked(pull.worker, "pull", answer);
  if (!status.ok()) {
    due->push_back(
        [callback = std::move(pull.callback), status] { callback(status); });
    return;
  }
  due->push_back([this, training = training_, clock = answer.clock,
                  pull = std::move(pull)] {
    auto bundle = training->tables->Read(pull.selection, RowNow());
    if (!bundle.ok()) return pull.callback(bundle.status());
    pull.callback(Pulled{*std::move(bundle), clock});
  });
}

absl::Status Server::StatusOfLocked(const absl::optional<WorkerId>& worker,
                                    absl::string_view call,
                                    const Coordinator::Answer& answer) const {
  if (answer.verdict == Verdict::kDraining && !failure_.ok()) return failure_;
  if (answer.verdict == Verdict::kTimedOut) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the parameter server has waited for ",
        absl::FormatDuration(options_.max_wait),
        answer.reason.empty() ? "" : ": the call ", answer.reason));
  }
  return Refusal(answer.verdict, worker, call);
}

void Server::Cancel(uint64_t ticket) {
  const absl::Status status = absl::CancelledError("the caller has given up");
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (coordinator_.has_value()) coordinator_->Cancel(ticket);
    if (auto push = pending_pushes_.find(ticket);
        push != pending_pushes_.end()) {
      AnswerPushLocked(std::move(push->second), {ticket, Verdict::kReplaced},
                       &due);
      pending_pushes_.erase(push);
    } else if (auto pull = pending_pulls_.find(ticket);
               pull != pending_pulls_.end()) {
      due.push_back([callback = TakePullLocked(pull).callback, status] {
        callback(status);
      });
    } else if (auto ready = pending_ready_.find(ticket);
               ready != pending_ready_.end()) {
      due.push_back([callback = std::move(ready->second.callback), status] {
        callback(status);
      });
      pending_ready_.erase(ready);
    } else if (auto snapshot = pending_snapshots_.find(ticket);
               snapshot != pending_snapshots_.end()) {
      due.push_back([callback = std::move(snapshot->second.callback), status] {
        callback(status);
      });
      pending_snapshots_.erase(snapshot);
    }
  }
  Run(due);
}

}  // namespace penstock::ps
