// A counter of events that threads wait for.

#ifndef PENSTOCK_COLLECTIVES_NET_SIGNAL_H_
#define PENSTOCK_COLLECTIVES_NET_SIGNAL_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {

// Thread-safe.
class Signal {
 public:
  explicit Signal(progress::PollingMode polling) : policy_(polling) {}

  // Returns the number of events. Read the number before you check whether your
  // event has happened.
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  // Adds an event, and wakes all waiting threads.
  void Notify();
  // Waits until the number of events differs from `seen`, for at most `most`.
  // Polls before it sleeps.
  void Await(uint32_t seen, absl::Duration most);

 private:
  bool Spin(uint32_t seen, absl::Time begun, absl::Duration most);
  void Sleep(uint32_t seen, absl::Duration most);

  progress::SpinPolicy policy_;
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_SIGNAL_H_
