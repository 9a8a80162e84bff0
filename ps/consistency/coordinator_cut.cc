// Takes a server to a cut.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/consistency/coordinator.h"

namespace penstock::ps {

HeldSteps Coordinator::Hold() {
  gate_.Close();
  HeldSteps held;
  for (const ConsistencyPolicy& policy : policies_) {
    if (policy.synchronous()) {
      held.version = std::max(held.version, policy.version());
    }
  }
  held.begun = gate_.begun();
  return held;
}

absl::Status Coordinator::CheckCut(const CutPoint& cut,
                                   bool is_synchronous) const {
  if (cut.version.has_value() != is_synchronous) {
    return absl::InvalidArgumentError(
        is_synchronous
            ? "the cut has no version, and the model has a synchronous table"
            : "the cut has a version, and the model has no synchronous table");
  }
  const absl::optional<Membership::Steps> steps = StepsUnderWay();
  uint64_t limit = membership_.floor();
  if (steps.has_value()) limit = std::max(limit, steps->newest);
  for (const RankClock& each : membership_.Clocks()) {
    limit = std::max(limit, each.clock);
  }
  limit += kMaxLead + 1;
  if (cut.version.value_or(0) > limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cut is at version ", *cut.version, ", beyond ", limit));
  }
  for (const RankClock& each : cut.clocks) {
    if (each.worker.rank < kMaxRanks && each.clock <= limit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the cut is at clock ", each.clock, " of rank ",
                     each.worker.rank, ", beyond ", limit));
  }
  return absl::OkStatus();
}

bool Coordinator::GoOnTo(CutPoint cut, Outcome* outcome) {
  const absl::optional<Membership::Steps> steps = StepsUnderWay();
  const bool is_past = cut.version.has_value() && steps.has_value() &&
                       steps->newest > *cut.version;
  if (is_past || !gate_.OpenUpTo(std::move(cut))) {
    *outcome = Release();
    return false;
  }
  Settle({}, outcome);
  return true;
}

bool Coordinator::IsAtCut() const {
  const CutPoint* const cut = gate_.cut();
  if (cut == nullptr) return false;
  bool has_synchronous = false;
  for (const ConsistencyPolicy& policy : policies_) {
    for (const auto& [clock, rank] : policy.unapplied()) {
      if (clock < cut->ClockOf(rank)) return false;
    }
    if (!policy.synchronous() || !cut->version.has_value()) continue;
    has_synchronous = true;
    if (policy.version() < *cut->version) return false;
  }
  if (has_synchronous) return true;
  // Waits for pushes in the cut that another server has and this server still
  // expects.
  if (cut->version.has_value()) {
    return membership_.CountBelow(*cut->version, 1) == 0;
  }
  return std::all_of(cut->clocks.begin(), cut->clocks.end(),
                     [this](const RankClock& each) {
                       const uint32_t rank = each.worker.rank;
                       return !membership_.HasMember(rank) ||
                              membership_.ClockOf(rank) >= each.clock;
                     });
}

Coordinator::Outcome Coordinator::CloseCut() {
  const CutPoint& cut = *gate_.cut();
  if (cut.version.has_value()) membership_.ForgoAll(*cut.version);
  for (const RankClock& each : cut.clocks) {
    membership_.Forgo(each.worker.rank, each.clock);
  }
  Outcome outcome;
  Settle({}, &outcome);
  return outcome;
}

Coordinator::Outcome Coordinator::Release() {
  Outcome outcome;
  gate_.Open();
  Settle({}, &outcome);
  return outcome;
}

uint64_t Coordinator::AppliedFloor() const {
  uint64_t floor = membership_.floor();
  for (const ConsistencyPolicy& policy : policies_) {
    if (policy.unapplied().empty()) continue;
    floor = std::min(floor, policy.unapplied().begin()->first);
  }
  return floor;
}

}  // namespace penstock::ps
