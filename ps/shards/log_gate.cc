#include "ps/shards/log_gate.h"

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

void LogGate::Keep(uint64_t ticket, const PushId& push,
                   std::function<void()> go_on) {
  kept_[ticket] = {push, std::move(go_on)};
}

std::vector<std::function<void()>> LogGate::TakeDue(absl::Time now) {
  if (now >= ends_) Open(hold_);
  std::vector<std::function<void()>> due;
  for (auto at = kept_.begin(); at != kept_.end();) {
    if (!gate_.LetsThrough(at->second.first)) {
      ++at;
      continue;
    }
    due.push_back(std::move(at->second.second));
    at = kept_.erase(at);
  }
  return due;
}

void LogGate::Clear() {
  kept_.clear();
  ++hold_;
  Open(hold_);
}

}  // namespace penstock::ps
