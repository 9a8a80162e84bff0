#include "ps/consistency/progress.h"

#include <algorithm>

namespace penstock::ps {

absl::optional<Membership::Steps> StepsUnderWay(const Coordinator& server) {
  absl::optional<Membership::Steps> steps;
  for (size_t at = 0; at < server.policies(); ++at) {
    const ConsistencyPolicy& policy = server.policy(at);
    if (!policy.synchronous()) continue;
    const uint64_t version = policy.version();
    if (!steps.has_value()) steps = Membership::Steps{version, version};
    steps->oldest = std::min(steps->oldest, version);
    steps->newest = std::max(steps->newest, version);
  }
  return steps;
}

HeldSteps BegunBy(const Coordinator& server) {
  HeldSteps held;
  const absl::optional<Membership::Steps> steps = StepsUnderWay(server);
  if (steps.has_value()) held.version = steps->newest;
  held.begun = server.gate().begun();
  return held;
}

bool IsQuiet(const Coordinator& server) {
  for (size_t at = 0; at < server.policies(); ++at) {
    const ConsistencyPolicy& policy = server.policy(at);
    if (policy.state() == ConsistencyPolicy::State::kApplying) return false;
    if (!policy.synchronous() && !policy.unapplied().empty()) return false;
  }
  return true;
}

bool IsAt(const CutPoint& cut, const Coordinator& server) {
  bool has_synchronous = false;
  for (size_t at = 0; at < server.policies(); ++at) {
    const ConsistencyPolicy& policy = server.policy(at);
    for (const auto& [clock, rank] : policy.unapplied()) {
      if (clock < cut.ClockOf(rank)) return false;
    }
    if (!policy.synchronous() || !cut.version.has_value()) continue;
    has_synchronous = true;
    if (policy.version() < *cut.version) return false;
  }
  if (has_synchronous) return true;
  // Waits for pushes before the cut that another server has and this server
  // still expects.
  const Membership& members = server.membership();
  if (cut.version.has_value()) {
    return members.CountBelow(*cut.version, 1) == 0;
  }
  return std::all_of(
      cut.clocks.begin(), cut.clocks.end(), [&members](const RankClock& each) {
        const uint32_t rank = each.worker.rank;
        return !members.HasMember(rank) || members.ClockOf(rank) >= each.clock;
      });
}

bool IsAtCut(const Coordinator& server) {
  const CutPoint* const cut = server.gate().cut();
  return cut != nullptr && IsAt(*cut, server);
}

bool IsPast(const CutPoint& cut, const Coordinator& server) {
  const absl::optional<Membership::Steps> steps = StepsUnderWay(server);
  const bool has_later_step = cut.version.has_value() && steps.has_value() &&
                              steps->newest > *cut.version;
  return has_later_step || server.gate().IsPast(cut);
}

}  // namespace penstock::ps
