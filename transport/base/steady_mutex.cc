#include "transport/base/steady_mutex.h"

#include <algorithm>

namespace penstock {
namespace base {

void SteadyMutex::Lock() { mu_.Lock(); }

void SteadyMutex::Unlock() {
  WakeLocked();
  mu_.Unlock();
}

bool SteadyMutex::AwaitFor(absl::Duration timeout, Condition is_true) {
  if (is_true()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  const absl::Time deadline = SteadyNow() + timeout;
  WakeLocked();  // this thread may have changed the state
  Waiter self{is_true, false, {}};
  waiters_.push_back(&self);
  bool result = false;
  do {
    self.is_woken = false;
    self.wake.WaitUntil(&mu_, deadline);
    result = is_true();
  } while (!result && SteadyNow() < deadline);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
  return result;
}

void SteadyMutex::WakeLocked() {
  for (Waiter* const each : waiters_) {
    if (each->is_woken || !each->is_true()) continue;
    each->is_woken = true;
    each->wake.Signal();
  }
}

}  // namespace base
}  // namespace penstock
