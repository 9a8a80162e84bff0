// Brings a server to a cut.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/progress.h"

namespace penstock::ps {

HeldSteps Coordinator::Hold() {
  gate_.Close();
  return BegunBy(*this);
}

absl::Status Coordinator::CheckCut(const CutPoint& cut,
                                   bool is_synchronous) const {
  if (cut.version.has_value() != is_synchronous) {
    return absl::InvalidArgumentError(
        is_synchronous
            ? "the cut has no version, and the model has a synchronous table"
            : "the cut has a version, and the model has no synchronous table");
  }
  const absl::optional<Membership::Steps> steps = StepsUnderWay(*this);
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
  if (IsPast(cut, *this)) {
    *outcome = Release();
    return false;
  }
  gate_.OpenUpTo(std::move(cut));
  Settle({}, outcome);
  return true;
}

Coordinator::Outcome Coordinator::CloseCut() { return Forgo(*gate_.cut()); }

Coordinator::Outcome Coordinator::Forgo(const CutPoint& cut) {
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
