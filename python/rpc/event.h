// An event that threads of the program wait for.

#ifndef PENSTOCK_PYTHON_RPC_EVENT_H_
#define PENSTOCK_PYTHON_RPC_EVENT_H_

#include <atomic>
#include <condition_variable>

#include "absl/time/time.h"
#include "transport/base/mutex.h"

namespace penstock::python {

// An event that happens once. Thread-safe. Needs no GIL.
class Event {
 public:
  void Set();
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  // Polls the process's paths, then sleeps, until the event is set or
  // base::SteadyNow() reaches `deadline`. Returns is_set(). Call it Unlocked.
  bool WaitUntil(absl::Time deadline);

 private:
  bool SleepUntil(absl::Time deadline);

  std::atomic<bool> set_{false};
  base::Mutex mu_;  // orders Set() and the decision to sleep
  std::condition_variable_any changed_;
};

// Sleeps on `changed` until base::SteadyNow() reaches `deadline`, or until
// something wakes the thread. Call with the lock.
void SleepOn(std::condition_variable_any* changed, base::Mutex* mu,
             absl::Time deadline);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_EVENT_H_
