// Calls back at times of the steady clock.

#ifndef PENSTOCK_PS_CLIENT_STEADY_TIMER_H_
#define PENSTOCK_PS_CLIENT_STEADY_TIMER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// gRPC's timers do not serve for this: they wait by the system's clock, and if
// that is set back by an hour, they are an hour late.
//
// Thread-safe, but for the destructor. Has a thread of its own.
class SteadyTimer {
 public:
  // Unique; default: of no call.
  using Id = std::pair<absl::Time, uint64_t>;

  SteadyTimer() : thread_([this] { ThreadLoop(); }) {}
  // What has not been called by then is not called.
  ~SteadyTimer();
  SteadyTimer(const SteadyTimer&) = delete;
  SteadyTimer& operator=(const SteadyTimer&) = delete;

  // Calls `call` once, at `time`, by base::SteadyNow(). The call must be short
  // and must not use this timer.
  Id At(absl::Time time, std::function<void()> call) ABSL_LOCKS_EXCLUDED(mu_);

  // When this returns, the call has ended or will never begin.
  void Cancel(const Id& id) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  base::SteadyCondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  // When the thread looks again. It is not woken for what comes later, and if
  // all is cancelled by then, has woken in vain: most calls are, soon.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::map<Id, std::function<void()>> calls_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_STEADY_TIMER_H_
