// Monotonic time for durations and deadlines. The system's clock is unsuitable,
// because it may be set.

#ifndef PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_
#define PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace penstock {
namespace base {

// Returns the monotonic time, which never goes back and never jumps. Counts
// from the machine's start, so compare only results of this function. Never
// less than absl::UnixEpoch(). Thread-safe.
absl::Time SteadyNow();

// A condition variable whose deadlines are in SteadyNow(). absl::CondVar uses
// the system's clock, even for durations: if the clock is set back by an hour,
// the wait lasts an hour longer. Thread-safe.
class SteadyCondVar {
 public:
  // Wakes one waiting thread.
  void Signal() { condition_.notify_one(); }

  // Unlocks `mu`. Waits until a signal comes or SteadyNow() reaches `deadline`.
  // Locks `mu` again. May also return early, after a spurious wake-up or after
  // 24 hours.
  void WaitUntil(absl::Mutex* mu, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

 private:
  std::condition_variable_any condition_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_
