// A state that callbacks change, and that threads of the program wait for.

#ifndef PENSTOCK_PYTHON_RPC_MONITOR_H_
#define PENSTOCK_PYTHON_RPC_MONITOR_H_

#include <condition_variable>

#include "absl/time/time.h"
#include "python/rpc/spin.h"
#include "transport/base/mutex.h"

namespace penstock::python {

// Sleeps on `changed` until base::SteadyNow() reaches `deadline`, or until the
// thread is woken. Call with the lock.
void SleepOn(std::condition_variable_any* changed, base::Mutex* mu,
             absl::Time deadline);

// A mutex, and waits for conditions on what it guards. Needs no GIL.
class ABSL_LOCKABLE Monitor {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.Lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}
  // Wakes all waiting threads. Call it with the lock after each change.
  void NotifyAll() { changed_.notify_all(); }

  // Polls the process's paths, then sleeps, until condition() is true or
  // base::SteadyNow() reaches `deadline`. Returns the last result of
  // condition(), which is called with the lock. Call it without the lock,
  // Unlocked.
  template <typename Condition>
  bool WaitUntil(absl::Time deadline, const Condition& condition) {
    const auto holds = [this, &condition] {
      base::MutexLock lock(&mu_);
      return condition();
    };
    const auto sleep = [this, &condition, deadline] {
      base::MutexLock lock(&mu_);
      if (!condition()) SleepOn(&changed_, &mu_, deadline);
      return condition();
    };
    return PollUntil(deadline, holds, sleep);
  }

 private:
  base::Mutex mu_;
  std::condition_variable_any changed_;
};

class ABSL_SCOPED_LOCKABLE MonitorLock {
 public:
  explicit MonitorLock(Monitor* monitor) ABSL_EXCLUSIVE_LOCK_FUNCTION(monitor)
      : monitor_(monitor) {
    monitor_->Lock();
  }
  ~MonitorLock() ABSL_UNLOCK_FUNCTION() { monitor_->Unlock(); }
  MonitorLock(const MonitorLock&) = delete;
  MonitorLock& operator=(const MonitorLock&) = delete;

 private:
  Monitor* const monitor_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_MONITOR_H_
