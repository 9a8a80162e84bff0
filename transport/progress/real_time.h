// Detects real-time threads, which the scheduler prefers to all ordinary
// threads, and limits how they spin.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_REAL_TIME_H_
#define PENSTOCK_TRANSPORT_PROGRESS_REAL_TIME_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// The maximum age of a cached result of IsRealTime(), in nanoseconds. A spinner
// calls IsRealTime() after every few polls. A system call each time would delay
// its polls.
constexpr int64_t kRealTimeLookNanos = 1000 * 1000;

// Returns true if the calling thread runs under SCHED_FIFO, SCHED_RR or
// SCHED_DEADLINE. Such a thread gives its core to no ordinary thread, not even
// by sched_yield(). `now` is base::SteadyNow(). Asks the kernel at most once in
// kRealTimeLookNanos for each thread.
bool IsRealTime(absl::Time now);

// The cores on which real-time threads of a process spin. One core stays free,
// because the thread for which a spinner waits may need it.
//
// Thread-safe without locks.
class RealTimeCores {
 public:
  // Returns the cores of the process. The first call sets their number. Never
  // destroyed.
  static RealTimeCores* OfProcess(int cores);

  // Allows spinners to take all but one of `cores`, the cores that the process
  // may use.
  explicit RealTimeCores(int cores) : limit_(cores - 1) {}

  // Claims a core for a spinner. Returns false if only one core is left.
  bool Take() {
    if (held_.fetch_add(1) < limit_) return true;
    GiveBack();
    return false;
  }
  void GiveBack() { held_.fetch_sub(1); }

 private:
  const int limit_;
  std::atomic<int> held_{0};
};

// One spin of a thread. Decides if the thread may spin although it is a
// real-time thread. Used by that thread only.
class RealTimeSpin {
 public:
  // Begins a spin. In busy mode, real-time threads spin on all but one of
  // `cores`. In other modes they do not spin.
  RealTimeSpin(bool is_busy, RealTimeCores* cores)
      : is_busy_(is_busy), cores_(cores) {}
  ~RealTimeSpin() {
    if (holds_) cores_->GiveBack();
  }
  RealTimeSpin(const RealTimeSpin&) = delete;
  RealTimeSpin& operator=(const RealTimeSpin&) = delete;

  // Returns true if the thread may continue to spin. A real-time thread must
  // not rely on sched_yield(), which gives the core to no ordinary thread.
  bool MayGoOn(bool is_real_time) {
    if (!is_real_time || holds_) return true;
    holds_ = is_busy_ && cores_->Take();
    return holds_;
  }

 private:
  const bool is_busy_;
  RealTimeCores* const cores_;
  bool holds_ = false;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_REAL_TIME_H_
