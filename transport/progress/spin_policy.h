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

// Learns how long to spin from earlier waits. If events come soon, the time is
// longer than they take, because sleeping and waking up costs more than a whole
// RPC. If they come late, the time falls to zero, because spinning only burns
// power. At zero it still learns, from how long the sleeps were.
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

  explicit SpinPolicy(PollingMode mode) : mode_(mode) {}

  // Returns how long to spin now.
  absl::Duration Budget() const;

  // Records a wait that took `waited`, spinning and sleeping together. `found`:
  // the awaited event came; else the caller gave up at its deadline.
  void Record(bool found, absl::Duration waited);

 private:
  const PollingMode mode_;
  std::atomic<int64_t> nanos_{kInitialNanos};
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
