#include "ps/consistency/policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ps/consistency/cut.h"

namespace penstock::ps {

absl::StatusOr<ConsistencyPolicy> ConsistencyPolicy::Create(
    const Options& options) {
  if (options.staleness < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("staleness is ", options.staleness,
                     "; it is a number of steps from 0 on, or unlimited"));
  }
  if (options.backup_workers > 0 && options.staleness != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("backup_workers is ", options.backup_workers,
                     " with staleness ", options.staleness,
                     ": only with staleness 0 does a step wait for workers"));
  }
  if (options.backup_workers >= kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("backup_workers is ", options.backup_workers,
                     ", more than there can be workers"));
  }
  if (options.version > kMaxClock) {
    return absl::InvalidArgumentError(
        absl::StrCat("version ", options.version, " is out of bounds"));
  }
  return ConsistencyPolicy(options);
}

ConsistencyPolicy::Judgement ConsistencyPolicy::Judge(
    const PushId& push, const Membership& members) const {
  if (push.clock > Limit(members)) return Judgement::kAhead;
  if (synchronous()) {
    // Accepts a push only for a batch that is still being gathered, because the
    // caller may be averaging a batch that is being applied. Also refuses a
    // push for a complete step that waits at a cut: the cut must not decide if
    // a push is late.
    const bool is_open = push.clock == version_ &&
                         state_ == State::kGathering && !IsComplete(members);
    return is_open ? Judgement::kTake : Judgement::kLate;
  }
  return busy_.contains(push.rank) ? Judgement::kBusy : Judgement::kTake;
}

void ConsistencyPolicy::Take(const PushId& push) {
  taken_.push_back(push);
  unapplied_.insert({push.clock, push.rank});
  busy_.insert(push.rank);
}

absl::optional<ConsistencyPolicy::Apply> ConsistencyPolicy::Next(
    const Membership& members, const CutGate* gate) {
  if (state_ == State::kApplying || !IsComplete(members)) return absl::nullopt;
  const auto first =
      std::find_if(taken_.begin(), taken_.end(), [gate](const PushId& push) {
        return gate == nullptr || gate->LetsThrough(push);
      });
  if (first == taken_.end()) return absl::nullopt;
  if (synchronous()) {
    // Sorting by rank suffices, because all accepted pushes have the same
    // clock.
    applying_.assign(taken_.begin(), taken_.end());
    taken_.clear();
    std::sort(applying_.begin(), applying_.end(),
              [](const PushId& a, const PushId& b) { return a.rank < b.rank; });
  } else {
    applying_ = {*first};
    taken_.erase(first);
  }
  state_ = State::kApplying;
  return Apply{version_, applying_};
}

bool ConsistencyPolicy::IsComplete(const Membership& members) const {
  if (taken_.empty()) return false;
  if (!synchronous()) return true;
  const size_t backup = options_.backup_workers;
  return members.assembled() &&
         members.CountBelow(version_ + 1, backup + 1) <= backup;
}

std::vector<PushId> ConsistencyPolicy::Applied() {
  if (state_ != State::kApplying) return {};
  state_ = State::kGathering;
  ++version_;
  for (const PushId& push : applying_) {
    unapplied_.erase({push.clock, push.rank});
    busy_.erase(push.rank);
  }
  std::vector<PushId> applied;
  applied.swap(applying_);
  return applied;
}

uint64_t ConsistencyPolicy::Stretch(uint64_t clock) const {
  const uint64_t staleness = static_cast<uint64_t>(options_.staleness);
  return staleness >= kMaxClock ? kMaxClock
                                : std::min(kMaxClock, clock + staleness);
}

uint64_t ConsistencyPolicy::Limit(const Membership& members) const {
  return synchronous() ? version_ : Stretch(members.floor());
}

uint64_t ConsistencyPolicy::Horizon(const Membership& members) const {
  if (synchronous() || unapplied_.empty()) return Limit(members);
  return std::min(Limit(members), Stretch(unapplied_.begin()->first));
}

bool ConsistencyPolicy::WaitsFor(const std::set<uint32_t>& ranks,
                                 const Membership& members) const {
  if (!synchronous() || state_ == State::kApplying) return false;
  const std::vector<uint32_t> behind = members.Below(version_ + 1, kMaxRanks);
  const auto awaited =
      std::count_if(behind.begin(), behind.end(),
                    [&](uint32_t rank) { return ranks.count(rank) > 0; });
  return static_cast<size_t>(awaited) > options_.backup_workers;
}

uint64_t ConsistencyPolicy::AwaitedStep(uint64_t clock,
                                        const Membership& members) const {
  if (clock <= Horizon(members)) return 0;
  if (synchronous()) return state_ == State::kApplying ? 0 : version_ + 1;
  const uint64_t staleness = static_cast<uint64_t>(options_.staleness);
  return clock <= staleness ? 0 : clock - staleness;
}

}  // namespace penstock::ps
