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

// A timer by the steady clock. gRPC's timers wait by the system's clock: if the
// system's clock is set back by an hour, gRPC's timers are an hour late.
//
// Thread-safe, except for the destructor. Has its own thread.
class SteadyTimer {
 public:
  // The identity of a scheduled call. The default value identifies no call.
  using Id = std::pair<absl::Time, uint64_t>;

  SteadyTimer() : thread_([this] { ThreadLoop(); }) {}
  // Drops all scheduled calls that have not begun.
  ~SteadyTimer();
  SteadyTimer(const SteadyTimer&) = delete;
  SteadyTimer& operator=(const SteadyTimer&) = delete;

  // Calls `call` once, at `time`, by base::SteadyNow(). The call must be short
  // and must not use this timer.
  Id At(absl::Time time, std::function<void()> call) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels a scheduled call. On return, the call has ended or will never
  // begin.
  void Cancel(const Id& id) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  base::SteadyCondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  // The time at which the thread wakes next. Only an earlier call wakes the
  // thread. Most calls are cancelled soon, so some wake-ups find nothing to do.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::map<Id, std::function<void()>> calls_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_STEADY_TIMER_H_
