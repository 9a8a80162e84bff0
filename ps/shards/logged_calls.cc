#include "ps/shards/logged_calls.h"

namespace penstock::ps {

void LoggedCalls::AddPush(uint64_t seq, const PushCallPtr& call) {
  pushes_[seq] = call;
  entries_[KeyOf(*call)] = seq;
  checked_bytes_ += call->held_bytes;
}

PushCallPtr LoggedCalls::TakePush(uint64_t seq) {
  const auto found = pushes_.find(seq);
  if (found == pushes_.end()) return nullptr;
  PushCallPtr call = std::move(found->second);
  pushes_.erase(found);
  entries_.erase(KeyOf(*call));
  checked_bytes_ -= call->held_bytes;
  return call;
}

uint64_t LoggedCalls::TakeJoin(uint64_t seq) {
  const auto found = joins_.find(seq);
  if (found == joins_.end()) return 0;
  const uint64_t ticket = found->second;
  joins_.erase(found);
  return ticket;
}

absl::optional<CheckedGradients> LoggedCalls::TakeChecked(uint64_t seq) {
  const auto found = pushes_.find(seq);
  if (found == pushes_.end()) return absl::nullopt;
  absl::optional<CheckedGradients> checked = std::move(found->second->checked);
  found->second->checked.reset();
  return checked;
}

absl::optional<uint64_t> LoggedCalls::EntryOf(const PushCall& call) const {
  const auto found = entries_.find(KeyOf(call));
  if (found == entries_.end()) return absl::nullopt;
  return found->second;
}

void LoggedCalls::Clear() {
  pushes_.clear();
  joins_.clear();
  entries_.clear();
  checked_bytes_ = 0;
}

}  // namespace penstock::ps
