// A lock whose use clang checks: tools/lint fails if code accesses a member
// declared ABSL_GUARDED_BY(mu_) without holding mu_.

#ifndef PENSTOCK_TRANSPORT_BASE_MUTEX_H_
#define PENSTOCK_TRANSPORT_BASE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace penstock {
namespace base {

// A std::mutex with annotations. absl::Mutex is slower than these critical
// sections, because it checks for deadlocks on each use in Debian's build of
// gRPC.
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
  // Tells clang that the caller holds the lock, if clang cannot see this, as in
  // a callback. Checks nothing at run time.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

  // Allows use with std::condition_variable_any.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { Lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { Unlock(); }

 private:
  std::mutex mu_;
};

// Holds the lock for its lifetime.
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
