#include "ps/client/steady_timer.h"

namespace penstock::ps {

SteadyTimer::~SteadyTimer() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    changed_.Signal();
  }
  thread_.join();
}

SteadyTimer::Id SteadyTimer::At(absl::Time time, std::function<void()> call) {
  absl::MutexLock lock(&mu_);
  const Id id = {time, ++last_};
  calls_.emplace(id, std::move(call));
  if (time < wakes_at_) {
    wakes_at_ = time;
    changed_.Signal();
  }
  return id;
}

void SteadyTimer::Cancel(const Id& id) {
  absl::MutexLock lock(&mu_);
  calls_.erase(id);
}

void SteadyTimer::ThreadLoop() {
  absl::MutexLock lock(&mu_);
  while (!stop_) {
    wakes_at_ =
        calls_.empty() ? absl::InfiniteFuture() : calls_.begin()->first.first;
    if (base::SteadyNow() < wakes_at_) {
      changed_.WaitUntil(&mu_, wakes_at_);
      continue;
    }
    calls_.begin()->second();
    calls_.erase(calls_.begin());
  }
}

}  // namespace penstock::ps
