#include "transport/base/steady_time.h"

#include <algorithm>
#include <chrono>

namespace penstock {
namespace base {
namespace {

using Clock = std::chrono::steady_clock;

// Gives absl::Mutex the method names that the standard library needs.
class Lockable {
 public:
  explicit Lockable(absl::Mutex* mu) : mu_(mu) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu_->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu_->Unlock(); }

 private:
  absl::Mutex* const mu_;
};

}  // namespace

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(Clock::now().time_since_epoch());
}

void SteadyCondVar::WaitUntil(absl::Mutex* mu, absl::Time deadline) {
  // The longest wait. Adding a longer wait to the present time might overflow.
  constexpr absl::Duration kLongest = absl::Hours(24);
  const absl::Duration wait = std::max(
      absl::ZeroDuration(), std::min(deadline - SteadyNow(), kLongest));
  Lockable lock(mu);
  condition_.wait_until(lock, Clock::now() + absl::ToChronoNanoseconds(wait));
}

}  // namespace base
}  // namespace penstock
