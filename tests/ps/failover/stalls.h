// Notices that the whole machine has paused.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_STALLS_H_
#define PENSTOCK_TESTS_PS_FAILOVER_STALLS_H_

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Measures by how much a thread oversleeps. During a pause of the whole
// machine, leases end that would otherwise be renewed. Thread-safe.
class Stalls {
 public:
  Stalls() : thread_([this] { Loop(); }) {}
  ~Stalls() {
    stop_ = true;
    thread_.join();
  }

  // Returns the longest stall since the last call.
  absl::Duration Take() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const absl::Duration longest = longest_;
    longest_ = absl::ZeroDuration();
    return longest;
  }

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mu_) {
    constexpr absl::Duration kStep = absl::Milliseconds(50);
    while (!stop_) {
      const absl::Time begin = base::SteadyNow();
      absl::SleepFor(kStep);
      absl::MutexLock lock(&mu_);
      longest_ = std::max(longest_, base::SteadyNow() - begin - kStep);
    }
  }

  std::atomic<bool> stop_{false};
  absl::Mutex mu_;
  absl::Duration longest_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_STALLS_H_
