// Ends a call from another thread.

#ifndef PENSTOCK_PS_SERVER_CANCELLATION_H_
#define PENSTOCK_PS_SERVER_CANCELLATION_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace penstock::ps {

// A request to end a call. The caller owns the object and calls Cancel(). The
// call checks is_cancelled(), and registers with EndWaitWith() how to end its
// wait. Thread-safe.
class Cancellation {
 public:
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_) {
    std::function<void()> end;
    {
      absl::MutexLock lock(&mu_);
      is_cancelled_ = true;
      end = std::move(end_wait_);
      end_wait_ = nullptr;
    }
    if (end) end();
  }

  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return is_cancelled_;
  }

  // Sets the function that Cancel() calls to end the wait. Calls `end`
  // immediately if Cancel() was called before. `end` must be harmless after the
  // wait is over.
  void EndWaitWith(std::function<void()> end) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (!is_cancelled_) {
        end_wait_ = std::move(end);
        return;
      }
    }
    end();
  }

 private:
  mutable absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> end_wait_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CANCELLATION_H_
