#include "ps/shards/feed_order.h"

#include <algorithm>

#include "ps/consistency/cut.h"

namespace penstock::ps {
namespace {

bool HasCompleteStep(const ConsistencyPolicy& policy,
                     const Membership& members) {
  if (!policy.synchronous()) return false;
  const PushId any = {0, policy.version()};
  return policy.Judge(any, members) == ConsistencyPolicy::Judgement::kLate;
}

bool HasStoppedPush(const ConsistencyPolicy& policy, const CutGate& gate) {
  const auto& unapplied = policy.unapplied();
  return std::any_of(unapplied.begin(), unapplied.end(), [&](const auto& each) {
    return !gate.LetsThrough({each.second, each.first});
  });
}

}  // namespace

bool MayFeed(const Coordinator& server, const absl::optional<PushId>& push) {
  const bool passes = push.has_value() && server.gate().LetsThrough(*push);
  for (size_t at = 0; at < server.policies(); ++at) {
    const ConsistencyPolicy& policy = server.policy(at);
    if (HasCompleteStep(policy, server.membership())) return false;
    if (passes && HasStoppedPush(policy, server.gate())) return false;
  }
  return true;
}

}  // namespace penstock::ps
