#include "python/rpc/deadlines.h"

#include <vector>

#include "python/rpc/spin.h"
#include "transport/base/steady_time.h"

namespace penstock::python {

Deadlines::Entry Deadlines::Add(absl::Time when, std::function<void()> expire) {
  if (when == absl::InfiniteFuture()) return Entry(nullptr, {when, 0});
  base::MutexLock lock(&mu_);
  const Key key(when, ++last_);
  entries_[key] = std::move(expire);
  SetTimerLocked();
  return Entry(shared_from_this(), key);
}

void Deadlines::Drop(const Key& key) {
  std::function<void()> expire;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  expire.swap(found->second);
  entries_.erase(found);
}

// Sets the timer to the time of the first entry, or leaves it at an earlier
// time, because the next call would need an early timer again.
void Deadlines::SetTimerLocked() {
  if (entries_.empty()) return;
  const absl::Time when = entries_.begin()->first.first;
  if (when >= timer_time_) return;
  const auto loop = progress::EventLoop::GetPolling(LoopPolling());
  if (!loop.ok()) return;
  (*loop)->Cancel(timer_);
  timer_time_ = when;
  timer_ = (*loop)->RunAfter(when - base::SteadyNow(),
                             [weak = weak_from_this(), when] {
                               if (const auto self = weak.lock())
                                 self->OnTimer(when);
                             });
}

void Deadlines::OnTimer(absl::Time when) {
  std::vector<std::function<void()>> expired;  // called outside the lock
  {
    base::MutexLock lock(&mu_);
    // Ignores a timer that was replaced too late to be cancelled.
    if (when == timer_time_) timer_time_ = absl::InfiniteFuture();
    const absl::Time now = base::SteadyNow();
    while (!entries_.empty() && entries_.begin()->first.first <= now) {
      expired.push_back(std::move(entries_.begin()->second));
      entries_.erase(entries_.begin());
    }
    SetTimerLocked();
  }
  for (const std::function<void()>& expire : expired) expire();
}

}  // namespace penstock::python
