// Calls a function at intervals, on its own thread.

#ifndef PENSTOCK_PS_CLIENT_REPEATED_CALL_H_
#define PENSTOCK_PS_CLIENT_REPEATED_CALL_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// A repeated call. Calls `call` on its own thread: first `interval` after the
// constructor, then `interval` after each end of a call, by the steady clock.
// The destructor waits for a call in progress.
class RepeatedCall {
 public:
  RepeatedCall(absl::Duration interval, std::function<void()> call);
  ~RepeatedCall();
  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration interval_;
  const std::function<void()> call_;
  absl::Mutex mu_;
  base::SteadyCondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_REPEATED_CALL_H_
