// Checks the coordinator of the simulation.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/ps/consistency/simulation.h"

namespace penstock::ps {
namespace {

bool IsSame(const std::vector<Coordinator::Apply>& a,
            const std::vector<Coordinator::Apply>& b) {
  auto same_push = [](const PushId& x, const PushId& y) {
    return x.rank == y.rank && x.clock == y.clock;
  };
  auto same_apply = [&](const auto& x, const auto& y) {
    return x.policy == y.policy && x.version == y.version &&
           std::equal(x.pushes.begin(), x.pushes.end(), y.pushes.begin(),
                      y.pushes.end(), same_push);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_apply);
}

}  // namespace

// Checks an outcome: first its answers, then its batches to apply, in the order
// in which the coordinator decided them.
void Simulation::TakeOutcome(const Outcome& outcome) {
  for (const Coordinator::Answer& answer : outcome.answers) TakeAnswer(answer);
  TakeApplies(outcome.applies);
  CheckRest();
  CheckBounds();
}

void Simulation::TakeAnswer(const Coordinator::Answer& answer) {
  auto found = calls_.find(answer.ticket);
  if (found == calls_.end()) {
    return Fail(absl::StrCat("ticket ", answer.ticket,
                             " is answered twice, or was never given"));
  }
  const Call call = found->second;
  calls_.erase(found);
  Count(absl::StrCat(call.is_push ? "push: " : "pull: ",
                     Describe(answer.verdict)));
  if (call.is_push) {
    CheckPushAnswer(answer, call);
  } else {
    CheckPullAnswer(answer, call);
  }
  for (Worker& worker : workers_) {
    if (worker.ticket == answer.ticket && worker.runs) {
      worker.ticket = 0;
      Advance(&worker, answer);
    }
  }
}

void Simulation::CheckPushAnswer(const Coordinator::Answer& answer,
                                 const Call& call) {
  if (answer.verdict == Verdict::kTimedOut) {
    if (now_ < call.deadline) Fail("a push times out too early");
    return;
  }
  if (answer.verdict == Verdict::kReplaced) {
    const bool by_same = sending_ != 0 && calls_.count(sending_) > 0 &&
                         calls_[sending_].worker->rank == call.worker->rank;
    if (!by_same) Fail("a push is replaced by none");
    return;
  }
  const absl::optional<Model::PushAnswer> expected =
      answer.ticket == sending_ ? expected_
                                : model_->Push(*call.worker, call.clock);
  if (!expected.has_value()) return Fail("a push is not held and should be");
  if (expected->verdict != answer.verdict) {
    return Fail(absl::StrCat("push of worker ", call.worker->rank, ", clock ",
                             call.clock, ": ", Describe(answer.verdict),
                             ", not ", Describe(expected->verdict)));
  }
  if (expected->counted != answer.counted) Fail("counted otherwise");
  for (size_t at = 0; at < answer.counted.size(); ++at) {
    if (!answer.counted[at]) continue;
    if (++promised_[at][{call.clock, call.worker->rank}] > 1) {
      Fail("a push is counted twice");
    }
  }
}

void Simulation::CheckPullAnswer(const Coordinator::Answer& answer,
                                 const Call& call) {
  switch (answer.verdict) {
    case Verdict::kAccepted:
      if (!model_->IsDue(call.clock, call.policies)) {
        Fail(absl::StrCat("a pull for ", call.clock, " reads what is too old"));
      }
      if (answer.clock < call.clock) Fail("a pull is good for the past");
      return;
    case Verdict::kTimedOut:
      if (now_ < call.deadline) Fail("a pull times out too early");
      if (answer.reason.empty()) Fail("no reason");
      return;
    case Verdict::kTooMany: {
      const auto held =
          std::count_if(calls_.begin(), calls_.end(), [&](const auto& entry) {
            const Call& other = entry.second;
            return !other.is_push &&
                   other.worker.has_value() == call.worker.has_value() &&
                   (!call.worker.has_value() ||
                    other.worker->rank == call.worker->rank);
          });
      if (static_cast<size_t>(held) != options_.max_held_pulls) {
        Fail("too many, but they are not");
      }
      return;
    }
    case Verdict::kInvalid:
      if (call.clock < kMaxClock && call.worker->rank < kMaxRanks) {
        Fail("a pull is invalid and is not");
      }
      return;
    case Verdict::kNotMember:
    case Verdict::kSuperseded:
      if (!call.worker.has_value() ||
          model_->Standing(*call.worker) != answer.verdict) {
        Fail("a pull is refused to whom it may not be");
      }
      return;
    case Verdict::kDraining:
      return;
    case Verdict::kAhead:
      if (!call.worker.has_value() ||
          !model_->IsFarAhead(call.worker->rank, call.clock)) {
        Fail("a pull is ahead and is not");
      }
      return;
    case Verdict::kDuplicate:
    case Verdict::kLate:
    case Verdict::kReplaced:
      Fail("a pull is answered like a push");
  }
}

void Simulation::Advance(Worker* worker, const Coordinator::Answer& answer) {
  switch (answer.verdict) {
    case Verdict::kAccepted:
      if (worker->stage == Worker::kPulls) {
        worker->clock = std::max(worker->clock, answer.clock);
        worker->stage = Worker::kComputes;
        return;
      }
      [[fallthrough]];
    case Verdict::kLate:
      ++worker->pushed;
      ++worker->clock;
      worker->stage = Worker::kPulls;
      return;
    case Verdict::kDuplicate:
      worker->clock =
          std::max(worker->clock + 1, model_->ClockOf(worker->id.rank));
      worker->stage = Worker::kPulls;
      return;
    case Verdict::kAhead:
      return Fail("what was computed on a pull is refused as ahead");
    case Verdict::kNotMember:
      worker->stage = Worker::kJoins;
      return;
    case Verdict::kSuperseded:
      return Stop(worker);
    case Verdict::kReplaced:
    case Verdict::kTimedOut:
    case Verdict::kTooMany:
    case Verdict::kInvalid:
    case Verdict::kDraining:
      return;
  }
}

void Simulation::TakeApplies(const std::vector<Coordinator::Apply>& applies) {
  const std::vector<Coordinator::Apply> expected = model_->TakeApplies();
  if (!IsSame(applies, expected)) {
    Fail(absl::StrCat(applies.size(), " applies begin, or others than ",
                      expected.size()));
  }
  for (const Coordinator::Apply& apply : applies) {
    Count("applied");
    if (apply.pushes.size() > 1) Count("applied together");
    for (size_t i = 1; i < apply.pushes.size(); ++i) {
      if (apply.pushes[i - 1].rank >= apply.pushes[i].rank) {
        Fail("a mean is not in order of rank");
      }
    }
    applying_.push_back(apply);
  }
}

// Checks that every held call really has to wait.
void Simulation::CheckRest() {
  for (const auto& [ticket, call] : calls_) {
    if (ticket == sending_) continue;
    if (call.is_push) {
      Model trial = *model_;
      if (trial.Push(*call.worker, call.clock).has_value()) {
        Fail("a push is held and need not be");
      }
    } else if (model_->IsDue(call.clock, call.policies)) {
      Fail(absl::StrCat("a pull for ", call.clock, " is held and need not be: ",
                        coordinator_->Explain(call.clock, call.policies)));
    }
  }
  if (model_->floor() != coordinator_->membership().floor()) {
    Fail(absl::StrCat("floor ", coordinator_->membership().floor(), ", not ",
                      model_->floor()));
  }
}

void Simulation::CheckBounds() {
  const auto pushes =
      std::count_if(calls_.begin(), calls_.end(),
                    [](const auto& entry) { return entry.second.is_push; });
  if (coordinator_->held_pushes() != static_cast<size_t>(pushes) ||
      coordinator_->held_pulls() != calls_.size() - pushes) {
    Fail("calls are held that have been answered");
  }
  const size_t ranks = coordinator_->membership().Clocks().size();
  for (size_t at = 0; at < coordinator_->policies(); ++at) {
    const auto& unapplied = coordinator_->policy(at).unapplied();
    std::set<uint32_t> owners;
    for (const auto& push : unapplied) owners.insert(push.second);
    if (owners.size() != unapplied.size() || owners.size() > ranks) {
      Fail("a rank has two pushes that are not applied");
    }
  }
}

void Simulation::CheckEnd() {
  while (!applying_.empty() && error_.empty()) FinishApply();
  for (size_t at = 0; at < promised_.size(); ++at) {
    for (const auto& push : coordinator_->policy(at).unapplied()) {
      ++applied_[at][push];
    }
    if (promised_[at] != applied_[at]) {
      Fail(absl::StrCat("policy ", at, ": not what was promised is applied"));
    }
  }
  for (const Coordinator::Answer& answer : coordinator_->Drain().answers) {
    if (answer.verdict != Verdict::kDraining) Fail("drained otherwise");
    if (calls_.erase(answer.ticket) != 1) Fail("drained twice");
  }
  if (!calls_.empty()) Fail("a call has no answer");
  if (coordinator_->NextDeadline() != absl::InfiniteFuture()) {
    Fail("something stays behind");
  }
}

}  // namespace penstock::ps
