// Time for durations and deadlines: the system's clock may be set, by hours.

#ifndef PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_
#define PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace penstock {
namespace base {

// Never goes back and never jumps. Its origin is the machine's start, so it
// compares with itself alone; not before absl::UnixEpoch().
absl::Time SteadyNow();

// absl::CondVar waits until a time of the system's clock, even where it is
// given a duration: one that is set back an hour makes it wait an hour longer.
// Thread-safe.
class SteadyCondVar {
 public:
  // Wakes one that waits.
  void Signal() { condition_.notify_one(); }

  // Frees `mu`, waits for a signal or until SteadyNow() is `deadline`, and
  // takes `mu` again. May return early for no reason.
  void WaitUntil(absl::Mutex* mu, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

 private:
  std::condition_variable_any condition_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STEADY_TIME_H_
