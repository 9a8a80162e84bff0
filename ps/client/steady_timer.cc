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
  if (calls_.begin()->first == id) changed_.Signal();
  return id;
}

void SteadyTimer::Cancel(const Id& id) {
  absl::MutexLock lock(&mu_);
  calls_.erase(id);
}

void SteadyTimer::ThreadLoop() {
  absl::MutexLock lock(&mu_);
  while (!stop_) {
    const absl::Time next =
        calls_.empty() ? absl::InfiniteFuture() : calls_.begin()->first.first;
    if (base::SteadyNow() < next) {
      changed_.WaitUntil(&mu_, next);
      continue;
    }
    calls_.begin()->second();
    calls_.erase(calls_.begin());
  }
}

}  // namespace penstock::ps
