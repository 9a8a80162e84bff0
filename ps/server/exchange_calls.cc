// The pushes and pulls of Exchange.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/exchange.h"
#include "ps/server/refusals.h"
#include "ps/server/running_time.h"

namespace penstock::ps {

using Verdict = Coordinator::Verdict;

namespace {

// Limits the wait for the end of a step, which a clock may need in order not to
// be ahead.
constexpr absl::Duration kStepTimeout = absl::Seconds(1);

size_t SizeOf(const Selection& selection) {
  size_t bytes = selection.parts.size() * sizeof(size_t);
  for (const Selection::Rows& rows : selection.rows) {
    bytes += sizeof(rows) + rows.ids.size() * sizeof(uint64_t);
  }
  return bytes;
}

// Logs why a push is refused, and returns the error for its caller.
absl::Status Refused(const Exchange::Options& options, const WorkerId& worker,
                     uint64_t clock, const absl::Status& why) {
  const std::string refusal =
      absl::StrCat("push of worker ", worker.rank, " for step ", clock,
                   " refused: ", why.message());
  LogLines(options.log, {refusal});
  return absl::Status(why.code(), refusal);
}

}  // namespace

// Returns the verdict if the clock alone shows that the step of a push is over.
// A limit must not refuse such a push, because an earlier copy of the same push
// may have used up the limit.
absl::optional<Exchange::PushVerdict> Exchange::VerdictOnRepeatedLocked(
    const WorkerId& worker, uint64_t clock) const {
  const Membership& members = coordinator_.membership();
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

absl::Status Exchange::CheckRoomLocked(const CheckedPush& push,
                                       size_t pending_bytes, Due* due) {
  if (is_draining_ || !failure_.ok()) return failure_;
  absl::Status status = room_.Check(push.worker, push.clock, push.held_bytes,
                                    pending_bytes, held_, coordinator_);
  if (absl::IsAborted(status)) FailLocked(status, due);
  // Ends the snapshots if their cut waits for this push, because pushes after
  // the cut may occupy the room that this push needs.
  if (absl::IsResourceExhausted(status) && NeverReachesCutLocked(push)) {
    const absl::Status why = absl::ResourceExhaustedError(absl::StrCat(
        "checkpoint: worker ", push.worker.rank, " has to push step ",
        push.clock,
        " first, and there is no room next to the pushes that wait for the "
        "checkpoint: raise --held-gradients"));
    HandleLocked(snapshots_.RemoveAll(why, due), due);
  }
  return status;
}

void Exchange::TakePushLocked(uint64_t ticket, PendingPush* push, Due* due) {
  const WorkerId worker = push->worker;
  const uint64_t clock = push->id.clock;
  const bool will_help = push->will_help;
  pending_bytes_ += push->held_bytes;
  pending_pushes_[ticket] = std::move(*push);
  HandleLocked(coordinator_.Push(ticket, worker, clock, RunningNow()), due,
               will_help);
}

absl::StatusOr<Exchange::Checked> Exchange::Check(
    const WorkerId& worker, uint64_t clock, const tensor::Bundle& bundle) {
  Checked checked;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    checked.repeated = VerdictOnRepeatedLocked(worker, clock);
    if (checked.repeated.has_value()) ++counts_.not_counted;
  }
  if (checked.repeated.has_value()) return checked;
  auto gradients = training_->tables->Check(bundle, clock_->Now());
  if (!gradients.ok()) {
    {
      base::SteadyMutexLock lock(&mu_);
      ++counts_.refused;
    }
    return Refused(options_, worker, clock, gradients.status());
  }
  checked.push.worker = worker;
  checked.push.clock = clock;
  checked.push.held_bytes = gradients->held_bytes();
  checked.push.gradients = *std::move(gradients);
  return checked;
}

absl::Status Exchange::CheckTakes(const CheckedPush& push,
                                  size_t pending_bytes) {
  absl::Status status;
  absl::optional<Verdict> refused;
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    refused = coordinator_.Refuses(push.worker, push.clock);
  }
  if (refused == Verdict::kAhead) Await(HasAppliedSteps, kStepTimeout);
  {
    base::SteadyMutexLock lock(&mu_);
    refused = coordinator_.Refuses(push.worker, push.clock);
    if (!refused.has_value()) {
      status = CheckRoomLocked(push, pending_bytes_ + pending_bytes, &due);
    }
    if (refused.has_value() || !status.ok()) ++counts_.refused;
  }
  RunAll(due);
  if (refused.has_value()) {
    return Refusal(*refused, push.worker,
                   absl::StrCat("push for step ", push.clock));
  }
  return status.ok() ? status
                     : Refused(options_, push.worker, push.clock, status);
}

void Exchange::Take(uint64_t ticket, CheckedPush push, PushCallback callback,
                    bool will_help) {
  absl::Status status;
  absl::optional<PushVerdict> repeated;
  PendingPush pending;
  pending.callback = std::move(callback);
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    repeated = VerdictOnRepeatedLocked(push.worker, push.clock);
    if (repeated.has_value()) {
      ++counts_.not_counted;
    } else {
      status = CheckRoomLocked(push, pending_bytes_, &due);
      if (!status.ok()) ++counts_.refused;
    }
    if (!repeated.has_value() && status.ok()) {
      pending.worker = push.worker;
      pending.id = {push.worker.rank, push.clock};
      pending.gradients = std::move(push.gradients);
      pending.held_bytes = push.held_bytes;
      pending.will_help = will_help;
      TakePushLocked(ticket, &pending, &due);
    }
  }
  if (repeated.has_value()) {
    pending.callback(*repeated);
  } else if (!status.ok()) {
    pending.callback(Refused(options_, push.worker, push.clock, status));
  }
  RunAll(due);
}

void Exchange::Pull(uint64_t ticket, const PullSpec& spec,
                    PullCallback callback) {
  absl::Status status = failure();
  if (!status.ok()) return callback(status);
  auto selection =
      training_->tables->Select(spec.ids, spec.parts, spec.all_parts);
  if (!selection.ok()) return callback(selection.status());
  selection->dtype = spec.dtype;
  const std::vector<size_t> policies =
      training_->tables->PoliciesOf(*selection);
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    const size_t bytes = SizeOf(*selection);
    waiting_bytes_ += bytes;
    pending_pulls_[ticket] = {spec.worker, *std::move(selection), bytes,
                              std::move(callback)};
    HandleLocked(coordinator_.Pull(ticket, spec.worker, spec.clock, policies,
                                   RunningNow()),
                 &due);
    BoundPullsLocked(ticket, &due);
  }
  RunAll(due);
}

Exchange::PendingPull Exchange::TakePullLocked(
    std::map<uint64_t, PendingPull>::iterator pull) {
  PendingPull taken = std::move(pull->second);
  waiting_bytes_ -= taken.bytes;
  pending_pulls_.erase(pull);
  return taken;
}

void Exchange::BoundPullsLocked(uint64_t ticket, Due* due) {
  const auto pull = pending_pulls_.find(ticket);
  if (pull == pending_pulls_.end()) return;
  const size_t others = pending_pulls_.size() - 1;
  if (others < options_.max_waiting_calls &&
      waiting_bytes_ <= options_.max_waiting_bytes) {
    return;
  }
  coordinator_.Cancel(ticket);
  auto refused = std::make_shared<PendingPull>(TakePullLocked(pull));
  due->push_back([refused, others] { refused->callback(TooManyWait(others)); });
}

void Exchange::HandleLocked(Outcome outcome, Due* due, bool will_help) {
  if (!outcome.notes.empty()) {
    due->push_back([this, notes = std::move(outcome.notes)] {
      LogLines(options_.log, notes);
    });
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
  Steps::News news;
  news.deadline = std::min(WhenRunning(coordinator_.NextDeadline()),
                           snapshots_.hold_ends());
  news.held_bytes = held_.bytes();
  news.applies = std::move(outcome.applies);
  news.will_help = will_help;
  steps_->Update(this, std::move(news));
  if (snapshots_.IsDue()) HandleLocked(snapshots_.Begin(), due);
}

void Exchange::AnswerPushLocked(PendingPush push,
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
  // Passes the gradients that were not stored to the callback, so that they are
  // destroyed without mu_.
  auto dropped = std::make_shared<Gradients>(std::move(push.gradients));
  due->push_back([callback = std::move(push.callback), result,
                  dropped = std::move(dropped)] { callback(result); });
}

void Exchange::AnswerPullLocked(PendingPull pull,
                                const Coordinator::Answer& answer, Due* due) {
  absl::Status status = StatusOfLocked(pull.worker, "pull", answer);
  if (!status.ok()) {
    due->push_back(
        [callback = std::move(pull.callback), status] { callback(status); });
    return;
  }
  due->push_back([this, training = training_, clock = answer.clock,
                  pull = std::move(pull)] {
    auto bundle = training->tables->Read(pull.selection, clock_->Now());
    if (!bundle.ok()) return pull.callback(bundle.status());
    pull.callback(Pulled{*std::move(bundle), clock});
  });
}

absl::Status Exchange::StatusOfLocked(const absl::optional<WorkerId>& worker,
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

void Exchange::Cancel(uint64_t ticket) {
  const absl::Status status = absl::CancelledError("the caller has cancelled");
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    coordinator_.Cancel(ticket);
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
    }
  }
  RunAll(due);
  RemoveSnapshot(ticket, status);
}

}  // namespace penstock::ps
