// A lock with waits for conditions. Their timeouts follow the steady clock.

#ifndef PENSTOCK_TRANSPORT_BASE_STEADY_MUTEX_H_
#define PENSTOCK_TRANSPORT_BASE_STEADY_MUTEX_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace base {

// A mutex that can wait until a condition on the guarded state is true.
//
// absl::Mutex has such waits too, but their timeouts follow the system's clock:
// if that clock is set back by an hour, a wait lasts an hour longer. As with
// absl::Mutex, code that changes the state signals nobody: Unlock() checks the
// conditions of all waiting threads.
class ABSL_LOCKABLE SteadyMutex {
 public:
  using Condition = absl::FunctionRef<bool()>;

  SteadyMutex() = default;
  SteadyMutex(const SteadyMutex&) = delete;
  SteadyMutex& operator=(const SteadyMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Wakes the threads whose conditions are true.
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Blocks until `is_true` returns true, or for at most `timeout`. Unlocks
  // meanwhile. Returns the last result of `is_true`. Any thread that holds the
  // lock calls `is_true`, which must be short and must not use this object.
  bool AwaitFor(absl::Duration timeout, Condition is_true)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Like AwaitFor(), without a timeout.
  void Await(Condition is_true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    AwaitFor(absl::InfiniteDuration(), is_true);
  }

 private:
  // A thread in AwaitFor().
  struct Waiter {
    Condition is_true;
    bool is_woken;
    SteadyCondVar wake;
  };

  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
};

// Holds the lock for its lifetime.
class ABSL_SCOPED_LOCKABLE SteadyMutexLock {
 public:
  explicit SteadyMutexLock(SteadyMutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu)
      : mu_(mu) {
    mu_->Lock();
  }
  ~SteadyMutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  SteadyMutexLock(const SteadyMutexLock&) = delete;
  SteadyMutexLock& operator=(const SteadyMutexLock&) = delete;

 private:
  SteadyMutex* const mu_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_STEADY_MUTEX_H_
