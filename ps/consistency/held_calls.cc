#include "ps/consistency/held_calls.h"

#include <algorithm>

namespace penstock::ps {

// Returns the owner of a pull: the worker's rank, or kMaxRanks for any reader.
uint32_t HeldCalls::OwnerOf(const HeldPull& pull) {
  return pull.worker.has_value() ? pull.worker->rank : kMaxRanks;
}

absl::optional<HeldPush> HeldCalls::Hold(const HeldPush& push) {
  absl::optional<HeldPush> before = TakePush(push.worker.rank);
  pushes_[push.worker.rank] = push;
  push_ranks_[push.ticket] = push.worker.rank;
  push_deadlines_.insert({push.deadline, push.worker.rank});
  return before;
}

absl::optional<HeldPush> HeldCalls::TakePush(uint32_t rank) {
  auto found = pushes_.find(rank);
  if (found == pushes_.end()) return absl::nullopt;
  const HeldPush push = found->second;
  push_deadlines_.erase({push.deadline, rank});
  push_ranks_.erase(push.ticket);
  pushes_.erase(found);
  return push;
}

bool HeldCalls::Hold(const HeldPull& pull, size_t policy) {
  const uint32_t owner = OwnerOf(pull);
  auto tickets = pulls_of_.find(owner);
  const size_t held = tickets == pulls_of_.end() ? 0 : tickets->second.size();
  if (held >= max_pulls_ || pulls_.count(pull.ticket) > 0) return false;
  pulls_of_[owner].insert(pull.ticket);
  pulls_[pull.ticket] = Entry{pull, policy};
  pull_deadlines_.insert({pull.deadline, pull.ticket});
  waiting_[policy].insert({pull.clock, pull.ticket});
  return true;
}

HeldPull HeldCalls::Take(uint64_t ticket) {
  auto found = pulls_.find(ticket);
  HeldPull pull = std::move(found->second.pull);
  waiting_[found->second.policy].erase({pull.clock, ticket});
  pulls_.erase(found);
  pull_deadlines_.erase({pull.deadline, ticket});
  auto tickets = pulls_of_.find(OwnerOf(pull));
  tickets->second.erase(ticket);
  if (tickets->second.empty()) pulls_of_.erase(tickets);
  return pull;
}

absl::optional<HeldPull> HeldCalls::TakeDue(size_t policy, uint64_t horizon) {
  const auto& waiting = waiting_[policy];
  if (waiting.empty() || waiting.begin()->first > horizon) return absl::nullopt;
  return Take(waiting.begin()->second);
}

absl::optional<HeldPull> HeldCalls::TakePullOf(uint32_t rank) {
  auto tickets = pulls_of_.find(rank);
  if (tickets == pulls_of_.end()) return absl::nullopt;
  return Take(*tickets->second.begin());
}

void HeldCalls::Cancel(uint64_t ticket) {
  if (pulls_.count(ticket) > 0) {
    Take(ticket);
    return;
  }
  auto rank = push_ranks_.find(ticket);
  if (rank != push_ranks_.end()) TakePush(rank->second);
}

absl::optional<HeldPush> HeldCalls::TakeExpiredPush(absl::Time now) {
  if (push_deadlines_.empty() || push_deadlines_.begin()->first > now) {
    return absl::nullopt;
  }
  return TakePush(push_deadlines_.begin()->second);
}

absl::optional<HeldPull> HeldCalls::TakeExpiredPull(absl::Time now) {
  if (pull_deadlines_.empty() || pull_deadlines_.begin()->first > now) {
    return absl::nullopt;
  }
  return Take(pull_deadlines_.begin()->second);
}

absl::Time HeldCalls::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  if (!push_deadlines_.empty()) next = push_deadlines_.begin()->first;
  if (!pull_deadlines_.empty()) {
    next = std::min(next, pull_deadlines_.begin()->first);
  }
  return next;
}

}  // namespace penstock::ps
