#include "ps/shards/log_gate.h"

#include <utility>

namespace penstock::ps {

uint64_t LogGate::Close(absl::Time ends) {
  gate_.Close();
  ends_ = ends;
  return ++hold_;
}

uint64_t LogGate::OpenUpTo(CutPoint cut, absl::Time ends) {
  gate_.OpenUpTo(std::move(cut));
  ends_ = ends;
  return ++hold_;
}

void LogGate::Open(uint64_t hold) {
  if (!IsPresent(hold)) return;
  gate_.Open();
  ends_ = absl::InfiniteFuture();
}

void LogGate::Keep(uint64_t ticket, const PushId& push, size_t bytes,
                   std::function<void()> go_on) {
  kept_[ticket] = {push, bytes, std::move(go_on)};
  bytes_ += bytes;
}

void LogGate::Forget(uint64_t ticket) {
  const auto found = kept_.find(ticket);
  if (found == kept_.end()) return;
  bytes_ -= found->second.bytes;
  kept_.erase(found);
}

std::vector<uint64_t> LogGate::GiveUp() {
  std::vector<uint64_t> tickets;
  for (const auto& [ticket, each] : kept_) {
    if (!gate_.LetsThrough(each.push)) tickets.push_back(ticket);
  }
  for (const uint64_t ticket : tickets) Forget(ticket);
  return tickets;
}

std::vector<std::function<void()>> LogGate::TakeDue(absl::Time now) {
  if (now >= ends_) Open(hold_);
  std::vector<std::function<void()>> due;
  for (auto at = kept_.begin(); at != kept_.end();) {
    Kept& each = at->second;
    if (!gate_.LetsThrough(each.push)) {
      ++at;
      continue;
    }
    due.push_back(std::move(each.go_on));
    bytes_ -= each.bytes;
    at = kept_.erase(at);
  }
  return due;
}

void LogGate::Clear() {
  kept_.clear();
  bytes_ = 0;
  ++hold_;
  Open(hold_);
}

}  // namespace penstock::ps
