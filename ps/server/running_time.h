// The time for which this process has run. Leases of workers are measured by
// this time.

#ifndef PENSTOCK_PS_SERVER_RUNNING_TIME_H_
#define PENSTOCK_PS_SERVER_RUNNING_TIME_H_

#include "absl/time/time.h"

namespace penstock::ps {

// A clock that does not advance while the process is stopped. A thread of the
// process beats regularly. A gap between two beats counts for kLongestGap at
// most, because a longer gap shows that the process did not run. A stop
// therefore shortens a worker's lease by kLongestGap at most. The process then
// reads the signs of life in its sockets before the lease ends.
//
// On an overloaded machine, the process runs rarely and the clock is slow. The
// clock advances at each beat, so each lease ends.
//
// Pure: the caller passes the time, by a monotonic clock. Not thread-safe.
class RunningTime {
 public:
  // Several beats long, so that a process that runs normally loses no time.
  static constexpr absl::Duration kLongestGap = absl::Milliseconds(100);

  // The running time begins with `now`.
  explicit RunningTime(absl::Time now) : counted_(now), beat_(now) {}

  void Beat(absl::Time now);
  // Returns the running time. Never decreases while `now` does not decrease.
  absl::Time At(absl::Time now) const;
  // Returns the earliest time at which the running time may have reached
  // `running`: `now`, or at least kLeastWait later.
  absl::Time WhenAt(absl::Time running, absl::Time now) const;
  static constexpr absl::Duration kLeastWait = absl::Milliseconds(1);

 private:
  absl::Time counted_;  // the running time at the last beat
  absl::Time beat_;     // the time of the last beat
};

// Returns the running time of this process. The first call starts the thread
// that beats, which never ends. Thread-safe.
absl::Time RunningNow();
// Returns the base::SteadyNow() at which RunningNow() may have reached
// `running`. See RunningTime::WhenAt(). Thread-safe.
absl::Time WhenRunning(absl::Time running);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_RUNNING_TIME_H_
