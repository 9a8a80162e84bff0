#include "python/rpc/event.h"

#include <chrono>

#include "python/rpc/spin.h"
#include "transport/base/steady_time.h"

namespace penstock::python {

void Event::Set() {
  set_.store(true, std::memory_order_release);
  base::MutexLock lock(&mu_);
  changed_.notify_all();
}

bool Event::SleepUntil(absl::Time deadline) {
  base::MutexLock lock(&mu_);
  if (!is_set()) SleepOn(&changed_, &mu_, deadline);
  return is_set();
}

bool Event::WaitUntil(absl::Time deadline) {
  while (!is_set()) {
    if (base::SteadyNow() >= deadline) return false;
    PollThenSleep([this] { return is_set(); },
                  [this, deadline] { return SleepUntil(deadline); });
  }
  return true;
}

void SleepOn(std::condition_variable_any* changed, base::Mutex* mu,
             absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return changed->wait(*mu);
  changed->wait_for(*mu,
                    absl::ToChronoNanoseconds(deadline - base::SteadyNow()));
}

}  // namespace penstock::python
