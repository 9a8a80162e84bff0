#include "tensor_service/rendezvous/step_members.h"

#include <algorithm>

namespace penstock::tensor {

StepMembers::Callers::iterator StepMembers::CallerLocked(
    const std::string& name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    callers_.splice(callers_.begin(), callers_, found->second);
    return callers_.begin();
  }
  if (callers_.size() == kMaxCallers) {
    for (const std::string& member : callers_.back().members) {
      members_.erase(member);
    }
    by_name_.erase(callers_.back().name);
    callers_.pop_back();
  }
  callers_.push_front({name, {}});
  by_name_.emplace(name, callers_.begin());
  return callers_.begin();
}

StepMembers::Member* StepMembers::MemberLocked(const std::string& caller,
                                               const std::string& name) {
  const auto found = members_.find(name);
  if (found != members_.end()) {
    // Moves the member's first caller to the front, so that it stays remembered
    // as long as the member returns.
    callers_.splice(callers_.begin(), callers_, found->second.caller);
    return &found->second;
  }
  const auto owner = CallerLocked(caller);
  if (owner->members.size() == kMaxMembersEach) {
    members_.erase(owner->members.front());
    owner->members.pop_front();
  }
  owner->members.push_back(name);
  Member& member = members_[name];
  member.caller = owner;
  return &member;
}

void StepMembers::Join(const std::string& caller, const std::string& member,
                       uint64_t step) {
  absl::MutexLock lock(&mu_);
  std::deque<uint64_t>& steps = MemberLocked(caller, member)->steps;
  if (std::find(steps.rbegin(), steps.rend(), step) != steps.rend()) return;
  if (steps.size() == kMaxSteps) steps.pop_front();
  steps.push_back(step);
}

bool StepMembers::Has(const std::string& member, uint64_t step) const {
  absl::MutexLock lock(&mu_);
  const auto found = members_.find(member);
  if (found == members_.end()) return false;
  const std::deque<uint64_t>& steps = found->second.steps;
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

}  // namespace penstock::tensor
