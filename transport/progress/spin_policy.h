// How long a waiting thread spins, that is polls, before it sleeps.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// PENSTOCK_POLLING.
enum class PollingMode {
  kAdaptive,  // spin for a time that is learnt from earlier waits
  kBusy,      // spin for ever
  kEvent,     // do not spin
};

// When a spinning thread had its core back last. Of one thread, or of what only
// one thread at a time uses: two threads that lose their cores once, together,
// have not lost one twice.
class CoreLosses {
 public:
  // Records that the thread yielded its core, and had it back at `now`, after
  // `took`. Returns how long it was lost, if that was soon after the last time;
  // else zero.
  absl::Duration Record(absl::Duration took, absl::Time now);

 private:
  int64_t had_core_since_ = 0;  // nanoseconds of SteadyNow()
};

// Learns how long to spin from earlier waits. If events come soon, the time is
// longer than they take, because sleeping and waking up costs more than a whole
// RPC. If they come late, the time falls to zero, because spinning only burns
// power. At zero it still learns, from how long the sleeps were.
//
// A spinner yields its core now and then. If others are always ready to run,
// the scheduler gives each of them its slice, which is milliseconds, before the
// spinner has its turn: it waits longer than if it had slept, because a thread
// that wakes up goes before those that have used up their share. So a thread
// that has lost its core by yielding, and again soon after it had it back, does
// not spin for some time, nor do those that share its policy: they would lose
// theirs, too.
//
// Thread-safe without locks. Of concurrent waits, one may go unnoticed.
class SpinPolicy {
 public:
  // Longer than a round trip over shared memory with a small handler.
  static constexpr int64_t kInitialNanos = 50 * 1000;
  // About ten times the cost of two wake-ups: beside a longer wait, that cost
  // is small. Also longer than peers on one machine take to fill and read
  // 1 MiB.
  static constexpr int64_t kMaxNanos = 500 * 1000;
  // A yield that takes so long lost the core to somebody's slice. To other
  // spinners it takes microseconds.
  static constexpr int64_t kLostCoreNanos = kMaxNanos;
  // Longer than any slice: the process was stopped, or the machine it is on.
  static constexpr int64_t kMaxSliceNanos = 200 * 1000 * 1000;
  // It is lost again soon if it was had for less than this part of the time for
  // which it was lost. Whoever took it then never sleeps; one that merely ran
  // by, for once, is no reason to rest.
  static constexpr double kSoon = 0.25;
  // How many times as long as the core was lost it does not spin then. With
  // longer rests, messages beside a single busy program took as long as over
  // TCP; with it they take half as long.
  static constexpr int kRestFactor = 5;

  explicit SpinPolicy(PollingMode mode) : mode_(mode) {}

  // Returns how long to spin, at `now`, which is base::SteadyNow().
  absl::Duration Budget(absl::Time now) const;

  // Records that a spinner yielded its core, and had it back at `now`, after
  // `took`. `losses` are those of its thread.
  void RecordYield(absl::Duration took, absl::Time now, CoreLosses* losses);

  // Records a wait that took `waited`, spinning and sleeping together. `found`:
  // the awaited event came; else the caller gave up at its deadline.
  void Record(bool found, absl::Duration waited);

 private:
  const PollingMode mode_;
  std::atomic<int64_t> nanos_{kInitialNanos};
  std::atomic<int64_t> rests_until_{0};  // nanoseconds of SteadyNow()
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
