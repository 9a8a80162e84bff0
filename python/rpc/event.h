// An event that threads of the program wait for.

#ifndef PENSTOCK_PYTHON_RPC_EVENT_H_
#define PENSTOCK_PYTHON_RPC_EVENT_H_

#include <atomic>

#include "absl/time/time.h"
#include "python/rpc/monitor.h"

namespace penstock::python {

// An event that happens once. Thread-safe. Needs no GIL.
class Event {
 public:
  void Set() {
    set_.store(true, std::memory_order_release);
    MonitorLock lock(&monitor_);
    monitor_.NotifyAll();
  }
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  // Waits as Monitor::WaitUntil() does. Returns is_set().
  bool WaitUntil(absl::Time deadline) {
    return is_set() ||
           monitor_.WaitUntil(deadline, [this] { return is_set(); });
  }

 private:
  std::atomic<bool> set_{false};
  Monitor monitor_;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_EVENT_H_
