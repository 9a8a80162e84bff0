// Decides how long a waiting thread spins, that is polls, before it sleeps.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// The values of PENSTOCK_POLLING.
enum class PollingMode {
  kAdaptive,  // spin for a time that is learnt from earlier waits
  kBusy,      // spin for ever
  kEvent,     // do not spin
};

// Remembers when a spinning thread last regained its core. Belongs to one
// thread, or to a resource that one thread uses at a time. Must not be shared
// by threads: one loss each of two threads does not count as a repeated loss.
class CoreLosses {
 public:
  // Records that the thread yielded its core, and regained the core at `now`,
  // after `took`. Returns `took` if this loss came soon after the previous one,
  // or else zero.
  absl::Duration Record(absl::Duration took, absl::Time now);

 private:
  int64_t had_core_since_ = 0;  // nanoseconds of SteadyNow()
};

// Learns from earlier waits how long to spin. If events come soon, the thread
// spins until they come, because sleeping and waking up costs more than a whole
// RPC. If events come late, the time to spin falls to zero, because spinning
// would only waste power. From then on the policy learns from the duration of
// sleeps.
//
// A spinner yields its core now and then. If other threads are always ready to
// run, the scheduler gives each of them a slice of milliseconds before the
// spinner runs again. Sleeping would be faster, because a thread that wakes up
// runs before threads that have used up their share.
//
// A thread that yields its core, loses it, and loses it again soon after
// regaining it therefore does not spin for some time: the policy rests. Other
// threads that share the policy do not spin either, because they would lose
// their cores, too. If a core is lost again soon after a rest, the next rest is
// twice as long.
//
// Thread-safe without locks. Concurrent waits may be recorded as one.
class SpinPolicy {
 public:
  // The first time to spin, in nanoseconds. Longer than a round trip over
  // shared memory with a small handler.
  static constexpr int64_t kInitialNanos = 50 * 1000;
  // Limits the time to spin, in nanoseconds. About ten times the cost of two
  // wake-ups, which is small compared with a longer wait. Also longer than two
  // processes on one machine take to write and read 1 MiB.
  static constexpr int64_t kMaxNanos = 500 * 1000;
  // The shortest yield that counts as a lost core, in nanoseconds: another
  // program has used its time slice. The shortest slice of Linux 6.12 is 1.4
  // ms, on two cores. A yield to other spinners takes tens of microseconds for
  // each of them. With 0.5 ms, eight clients on two cores often rested, and
  // made only two thirds as many calls.
  static constexpr int64_t kLostCoreNanos = 1000 * 1000;
  // Limits the losses of a core that count as another program's time slice.
  // Longer than any time slice. A longer loss means that the process or its
  // machine was stopped.
  static constexpr int64_t kMaxSliceNanos = 200 * 1000 * 1000;
  // Defines when a loss of the core comes "soon" after another loss: the thread
  // held the core in between for less than this fraction of the first loss's
  // time. Two such losses come from a program that never sleeps. One loss alone
  // causes no rest.
  static constexpr double kSoon = 0.25;
  // The duration of the first rest, as a multiple of the time for which the
  // core was lost. With a longer first rest, messages next to a single busy
  // program took as long as over TCP. With this factor they take half as long.
  static constexpr int kRestFactor = 5;

  // The duration of the first rest after a costly loss (RecordCostlyYield()),
  // as a multiple of the time for which the core was lost. Longer, because a
  // spin for sockets gains only tens of microseconds, and a lost time slice
  // costs milliseconds.
  static constexpr int kLongRestFactor = 10;
  // Limits a rest, in nanoseconds. After a core has become free, spinning
  // begins again within this time.
  static constexpr int64_t kMaxRestNanos = 1000 * 1000 * 1000;

  explicit SpinPolicy(PollingMode mode) : mode_(mode) {}

  // Returns how long to spin. `now` is base::SteadyNow().
  absl::Duration Budget(absl::Time now) const;

  // Returns true if the policy rests at `now`: no thread spins, because cores
  // were lost.
  bool Rests(absl::Time now) const;

  // Returns true if a spinning thread must stop at `now` because the policy
  // rests. In mode kBusy, threads never stop.
  bool EndsSpins(absl::Time now) const {
    return mode_ != PollingMode::kBusy && Rests(now);
  }

  // Records that a spinner yielded its core, and regained the core at `now`,
  // after `took`. `losses` are the losses of the spinner's thread. Two losses
  // in a row start a rest. Soon after a rest, one loss suffices.
  void RecordYield(absl::Duration took, absl::Time now, CoreLosses* losses);

  // Records a yield, as RecordYield() does, for a spin that gains little
  // compared with a time slice. Each loss starts a rest.
  void RecordCostlyYield(absl::Duration took, absl::Time now);

  // Records a wait of `waited`, spinning and sleeping together. `found` is true
  // if the awaited event came, false if the caller reached its deadline.
  void Record(bool found, absl::Duration waited);

 private:
  // Returns true if the policy rests at `now`, or if the last rest ended less
  // than its own duration ago. A spin that began before a rest continues during
  // the rest.
  bool HasJustRested(absl::Time now) const;
  // Begins a rest of `first`. If the core was lost `soon` after the last rest,
  // the rest is twice the last one.
  void BeginRest(absl::Duration first, bool soon, absl::Time now);

  const PollingMode mode_;
  std::atomic<int64_t> nanos_{kInitialNanos};
  std::atomic<int64_t> rests_until_{0};  // nanoseconds of SteadyNow()
  std::atomic<int64_t> rest_nanos_{0};   // the duration of the last rest
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
