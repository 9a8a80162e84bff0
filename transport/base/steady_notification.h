// An event that happens once.

#ifndef PENSTOCK_TRANSPORT_BASE_STEADY_NOTIFICATION_H_
#define PENSTOCK_TRANSPORT_BASE_STEADY_NOTIFICATION_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "transport/base/steady_mutex.h"

namespace penstock {
namespace base {

// Like absl::Notification, but timeouts follow the steady clock. Thread-safe.
class SteadyNotification {
 public:
  void Notify() {
    SteadyMutexLock lock(&mu_);
    is_notified_ = true;
  }

  // Blocks until Notify() is called.
  void Wait() const { WaitFor(absl::InfiniteDuration()); }
  // Blocks until Notify() is called, and returns true; false after `timeout`.
  bool WaitFor(absl::Duration timeout) const {
    SteadyMutexLock lock(&mu_);
    return mu_.AwaitFor(timeout, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return is_notified_;
    });
  }

 private:
  mutable SteadyMutex mu_;
  bool is_notified_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STEADY_NOTIFICATION_H_
