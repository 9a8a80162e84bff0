#include "ps/consistency/coordinator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ps/consistency/progress.h"

namespace penstock::ps {

using Judgement = ConsistencyPolicy::Judgement;
using Standing = Membership::Standing;

namespace {

using Verdict = Coordinator::Verdict;

Verdict VerdictOf(Standing standing) {
  switch (standing) {
    case Standing::kMember:
      return Verdict::kAccepted;
    case Standing::kNotMember:
      return Verdict::kNotMember;
    case Standing::kSuperseded:
      return Verdict::kSuperseded;
    case Standing::kInvalid:
      return Verdict::kInvalid;
    case Standing::kDraining:
      return Verdict::kDraining;
  }
  return Verdict::kInvalid;
}

}  // namespace

absl::StatusOr<Coordinator> Coordinator::Create(Options options) {
  if (options.max_wait <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("max_wait is not positive");
  }
  if (options.max_held_pulls == 0) {
    return absl::InvalidArgumentError("max_held_pulls is 0");
  }
  std::vector<ConsistencyPolicy> policies;
  // The clocks stay unchanged if there is no synchronous policy.
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const ConsistencyPolicy::Options& each : options.policies) {
    auto policy = ConsistencyPolicy::Create(each);
    if (!policy.ok()) return policy.status();
    if (policy->synchronous()) oldest = std::min(oldest, policy->version());
    policies.push_back(*std::move(policy));
  }
  options.membership.floor = std::min(options.membership.floor, oldest);
  for (RankClock& entry : options.membership.clocks) {
    entry.clock = std::min(entry.clock, oldest);
  }
  auto membership = Membership::Create(options.membership);
  if (!membership.ok()) return membership.status();
  return Coordinator(options, *std::move(membership), std::move(policies));
}

Coordinator::Coordinator(const Options& options, Membership membership,
                         std::vector<ConsistencyPolicy> policies)
    : max_wait_(options.max_wait),
      membership_(std::move(membership)),
      policies_(std::move(policies)),
      held_(policies_.size(), options.max_held_pulls),
      gate_(options.membership.clocks) {}

Coordinator::Outcome Coordinator::Join(const WorkerId& worker, absl::Time now) {
  Outcome outcome;
  Membership::Changes changes;
  const absl::optional<Membership::Steps> steps = StepsUnderWay(*this);
  outcome.verdict = VerdictOf(membership_.Join(worker, now, steps, &changes));
  Settle(std::move(changes), &outcome);
  if (outcome.verdict == Verdict::kAccepted) {
    outcome.clock = membership_.ClockOf(worker.rank);
    if (steps.has_value()) {
      const uint64_t useful = std::min(steps->oldest, Limit());
      outcome.clock = std::max(outcome.clock, useful);
    }
  }
  return outcome;
}

Coordinator::Outcome Coordinator::Heartbeat(const WorkerId& worker,
                                            absl::Time now) {
  Outcome outcome;
  Membership::Changes changes;
  outcome.verdict = VerdictOf(
      membership_.Heartbeat(worker, now, StepsUnderWay(*this), &changes));
  Settle(std::move(changes), &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Start() {
  Outcome outcome;
  Membership::Changes changes;
  membership_.Start(&changes);
  Settle(std::move(changes), &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Leave(const WorkerId& worker) {
  Outcome outcome;
  Membership::Changes changes;
  membership_.Leave(worker, &changes);
  Settle(std::move(changes), &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Lost(const WorkerId& worker) {
  Outcome outcome;
  Membership::Changes changes;
  membership_.Lost(worker, &changes);
  Settle(std::move(changes), &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Push(uint64_t ticket, const WorkerId& worker,
                                       uint64_t clock, absl::Time now) {
  Outcome outcome;
  membership_.Check(worker, now);
  const HeldPush push{ticket, worker, clock, now + max_wait_};
  absl::optional<Answer> answer = JudgePush(push, now);
  if (answer.has_value()) {
    outcome.answers.push_back(*std::move(answer));
  } else if (auto before = held_.Hold(push)) {
    outcome.answers.push_back({before->ticket, Verdict::kReplaced});
  }
  Settle({}, &outcome);
  return outcome;
}

absl::optional<Coordinator::Answer> Coordinator::JudgePush(const HeldPush& push,
                                                           absl::Time now) {
  const absl::optional<Verdict> refused = Refuses(push.worker, push.clock);
  if (refused.has_value()) return Answer{push.ticket, *refused};
  if (push.clock < membership_.ClockOf(push.worker.rank)) {
    return Answer{push.ticket, Verdict::kDuplicate};
  }
  const PushId id{push.worker.rank, push.clock};
  for (const ConsistencyPolicy& policy : policies_) {
    if (policy.Judge(id, membership_) == Judgement::kBusy) return absl::nullopt;
  }
  return TakePush(push, now);
}

absl::optional<Coordinator::Verdict> Coordinator::Refuses(
    const WorkerId& worker, uint64_t clock) const {
  const Verdict standing = VerdictOf(membership_.StandingOf(worker));
  if (standing != Verdict::kAccepted) return standing;
  if (clock >= kMaxClock) return Verdict::kInvalid;
  if (clock < membership_.ClockOf(worker.rank)) return absl::nullopt;
  if (clock > Limit() || IsFarAhead(worker.rank, clock)) return Verdict::kAhead;
  return absl::nullopt;
}

Coordinator::Answer Coordinator::TakePush(const HeldPush& push,
                                          absl::Time now) {
  Answer answer{push.ticket, Verdict::kAccepted};
  const PushId id{push.worker.rank, push.clock};
  bool is_counted = policies_.empty();
  for (ConsistencyPolicy& policy : policies_) {
    const bool takes = policy.Judge(id, membership_) == Judgement::kTake;
    if (takes) policy.Take(id);
    answer.counted.push_back(takes);
    is_counted |= takes;
  }
  if (!is_counted) answer.verdict = Verdict::kLate;
  membership_.Advance(id.rank, id.clock + 1, now);
  return answer;
}

Coordinator::Outcome Coordinator::Pull(uint64_t ticket,
                                       const absl::optional<WorkerId>& worker,
                                       uint64_t clock,
                                       std::vector<size_t> policies,
                                       absl::Time now) {
  Outcome outcome;
  Verdict verdict = Verdict::kAccepted;
  if (membership_.state() == Membership::State::kDraining) {
    verdict = Verdict::kDraining;
  } else if (worker.has_value()) {
    verdict = VerdictOf(membership_.Check(*worker, now));
  }
  if (policies.empty()) {
    for (size_t at = 0; at < policies_.size(); ++at) policies.push_back(at);
  }
  const bool is_known =
      std::all_of(policies.begin(), policies.end(),
                  [this](size_t at) { return at < policies_.size(); });
  if (verdict == Verdict::kAccepted && (!is_known || clock >= kMaxClock)) {
    verdict = Verdict::kInvalid;
  }
  if (verdict == Verdict::kAccepted && worker.has_value() &&
      IsFarAhead(worker->rank, clock)) {
    verdict = Verdict::kAhead;
  }
  if (verdict != Verdict::kAccepted) {
    outcome.answers.push_back({ticket, verdict});
    return outcome;
  }
  const HeldPull pull{ticket, worker, clock, std::move(policies),
                      now + max_wait_};
  absl::optional<size_t> waiting = FirstWaiting(pull);
  if (!waiting.has_value()) {
    outcome.answers.push_back(AnswerPull(pull));
  } else if (!held_.Hold(pull, *waiting)) {
    outcome.answers.push_back({ticket, Verdict::kTooMany});
  }
  return outcome;
}

void Coordinator::Cancel(uint64_t ticket) { held_.Cancel(ticket); }

Coordinator::Outcome Coordinator::Applied(size_t policy, absl::Time now) {
  Outcome outcome;
  for (const PushId& push : policies_[policy].Applied()) {
    absl::optional<HeldPush> held = held_.TakePush(push.rank);
    if (!held.has_value()) continue;
    absl::optional<Answer> answer = JudgePush(*held, now);
    if (answer.has_value()) {
      outcome.answers.push_back(*std::move(answer));
    } else {
      held_.Hold(*held);
    }
  }
  Settle({}, &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Tick(absl::Time now) {
  Outcome outcome;
  Membership::Changes changes;
  membership_.Tick(now, &changes);
  Settle(std::move(changes), &outcome);
  while (auto push = held_.TakeExpiredPush(now)) {
    outcome.answers.push_back({push->ticket, Verdict::kTimedOut});
  }
  while (auto pull = held_.TakeExpiredPull(now)) {
    Answer answer{pull->ticket, Verdict::kTimedOut};
    answer.reason = Explain(pull->clock, pull->policies);
    outcome.answers.push_back(std::move(answer));
  }
  return outcome;
}

Coordinator::Outcome Coordinator::Drain() {
  Outcome outcome;
  membership_.Drain();
  while (auto push = held_.TakeExpiredPush(absl::InfiniteFuture())) {
    outcome.answers.push_back({push->ticket, Verdict::kDraining});
  }
  while (auto pull = held_.TakeExpiredPull(absl::InfiniteFuture())) {
    outcome.answers.push_back({pull->ticket, Verdict::kDraining});
  }
  return outcome;
}

void Coordinator::Settle(Membership::Changes changes, Outcome* outcome) {
  outcome->notes = std::move(changes.notes);
  for (uint32_t rank : changes.departed) RefuseCallsOf(rank, outcome);
  HandOut(outcome);
  ReleasePulls(outcome);
}

void Coordinator::HandOut(Outcome* outcome) {
  for (size_t at = 0; at < policies_.size(); ++at) {
    auto apply = policies_[at].Next(membership_, &gate_);
    if (!apply.has_value()) continue;
    for (const PushId& push : apply->pushes) gate_.Note(push);
    outcome->applies.push_back({at, apply->version, std::move(apply->pushes)});
  }
}

// Refuses all held calls of a rank whose member has left. Only members have
// held calls.
void Coordinator::RefuseCallsOf(uint32_t rank, Outcome* outcome) {
  const Verdict verdict =
      membership_.HasMember(rank) ? Verdict::kSuperseded : Verdict::kNotMember;
  if (auto push = held_.TakePush(rank)) {
    outcome->answers.push_back({push->ticket, verdict});
  }
  while (auto pull = held_.TakePullOf(rank)) {
    outcome->answers.push_back({pull->ticket, verdict});
  }
}

void Coordinator::ReleasePulls(Outcome* outcome) {
  for (size_t at = 0; at < policies_.size(); ++at) {
    const uint64_t horizon = policies_[at].Horizon(membership_);
    while (auto pull = held_.TakeDue(at, horizon)) {
      absl::optional<size_t> waiting = FirstWaiting(*pull);
      if (waiting.has_value()) {
        held_.Hold(*pull, *waiting);
      } else {
        outcome->answers.push_back(AnswerPull(*pull));
      }
    }
  }
}

absl::optional<size_t> Coordinator::FirstWaiting(const HeldPull& pull) const {
  for (size_t at : pull.policies) {
    if (pull.clock > policies_[at].Horizon(membership_)) return at;
  }
  return absl::nullopt;
}

Coordinator::Answer Coordinator::AnswerPull(const HeldPull& pull) const {
  const uint64_t limit = Limit();
  uint64_t version = limit;
  bool is_synchronous = false;
  for (size_t at : pull.policies) {
    if (!policies_[at].synchronous()) continue;
    is_synchronous = true;
    version = std::min(version, policies_[at].version());
  }
  Answer answer{pull.ticket, Verdict::kAccepted};
  answer.clock = is_synchronous ? std::max(pull.clock, version) : pull.clock;
  if (pull.worker.has_value()) {
    const uint64_t expected = membership_.ClockOf(pull.worker->rank);
    answer.clock = std::max(answer.clock, std::min(expected, limit));
  }
  return answer;
}

uint64_t Coordinator::Limit() const {
  uint64_t limit = kMaxClock;
  for (const ConsistencyPolicy& policy : policies_) {
    limit = std::min(limit, policy.Limit(membership_));
  }
  return limit;
}

bool Coordinator::IsFarAhead(uint32_t rank, uint64_t clock) const {
  uint64_t step = std::max(membership_.ClockOf(rank), membership_.floor());
  const absl::optional<Membership::Steps> steps = StepsUnderWay(*this);
  if (steps.has_value()) step = std::max(step, steps->newest);
  return clock > step + kMaxLead;
}

absl::Time Coordinator::NextDeadline() const {
  return std::min(membership_.NextDeadline(), held_.NextDeadline());
}

std::vector<RankClock> Coordinator::AppliedClocks() const {
  // Collects the unapplied push of each rank. A rank has at most one, which is
  // the same for all policies, because its next push is accepted only after the
  // last one is applied.
  std::map<uint32_t, uint64_t> unapplied;
  for (const ConsistencyPolicy& policy : policies_) {
    for (const auto& [clock, rank] : policy.unapplied()) {
      unapplied[rank] = clock;
    }
  }
  std::vector<RankClock> clocks = membership_.Clocks();
  for (RankClock& entry : clocks) {
    auto found = unapplied.find(entry.worker.rank);
    if (found != unapplied.end()) entry.clock = found->second;
  }
  return clocks;
}

}  // namespace penstock::ps
