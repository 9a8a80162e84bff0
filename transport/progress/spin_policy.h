// How long a thread that waits polls before it sleeps.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// PENSTOCK_POLLING.
enum class PollingMode {
  kAdaptive,  // for a while that follows from how waits ended
  kBusy,      // for ever
  kEvent,     // not at all
};

// The time to spin, learnt from the waits before. Where events come soon it is
// longer than they take, for a sleep and a wake-up cost more than a whole RPC;
// where they come late it falls to zero, as spinning only burns power. It goes
// on learning at zero, from how long the sleeps were.
//
// Thread-safe without locks; concurrent waits may lose one another's lesson.
class SpinPolicy {
 public:
  // A round trip over shared memory with a small handler, with room to spare.
  static constexpr int64_t kInitialNanos = 50 * 1000;
  // About ten times what two wake-ups cost: beyond that, sleeping is cheap. And
  // longer than peers on one machine take to fill and read 1 MiB.
  static constexpr int64_t kMaxNanos = 500 * 1000;

  explicit SpinPolicy(PollingMode mode) : mode_(mode) {}

  // For how long to spin now.
  absl::Duration Budget() const;

  // A wait ended after `waited`, spinning and sleeping together, because what
  // it waited for came (`found`) or because the caller gave up (a deadline).
  void Record(bool found, absl::Duration waited);

 private:
  const PollingMode mode_;
  std::atomic<int64_t> nanos_{kInitialNanos};
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPIN_POLICY_H_
