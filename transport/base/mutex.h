// A lock whose use clang checks: what is declared ABSL_GUARDED_BY(mu_) is an
// error without it, in tools/lint.

#ifndef PENSTOCK_TRANSPORT_BASE_MUTEX_H_
#define PENSTOCK_TRANSPORT_BASE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace penstock {
namespace base {

// A std::mutex. absl::Mutex looks for deadlocks with each use in Debian's
// build of gRPC, which costs more than what these locks are held for.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mu_.try_lock();
  }
  // Tells the check what it cannot see: the caller holds the lock, as in a
  // callback.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

  // As std::condition_variable_any wants them.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { Lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { Unlock(); }

 private:
  std::mutex mu_;
};

// Holds the lock while it exists.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_MUTEX_H_
