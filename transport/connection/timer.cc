#include "transport/connection/timer.h"

#include <utility>

namespace penstock {
namespace connection {

void Timer::Start(absl::Duration delay, std::function<void()> expired) {
  Cancel();
  const uint64_t start = ++starts_;
  std::shared_ptr<Host> share = host_->Share();
  id_ = host_->executor()->RunAfter(
      delay, [this, share, start, expired = std::move(expired)](bool is_due) {
        share->Enter([&] {
          if (is_due) OnDue(start, expired);
        });
      });
}

void Timer::Cancel() {
  if (id_ != 0) host_->executor()->Cancel(std::exchange(id_, 0));
}

// Calls `expired`, unless the timer was cancelled or restarted while the task
// waited for the lock.
void Timer::OnDue(uint64_t start, const std::function<void()>& expired) {
  if (start == starts_ && std::exchange(id_, 0) != 0) expired();
}

}  // namespace connection
}  // namespace penstock
