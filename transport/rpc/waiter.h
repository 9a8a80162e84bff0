// Lets threads wait for callbacks, and poll meanwhile.

#ifndef PENSTOCK_TRANSPORT_RPC_WAITER_H_
#define PENSTOCK_TRANSPORT_RPC_WAITER_H_

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace rpc {

// A counting semaphore. A waiting thread polls the process's fast paths for a
// while before it sleeps. With CallbackThread::kAny, the callback that ends the
// wait may run on the waiting thread itself. Thread-safe. Keep the waiter alive
// until each Notify() has returned.
class Waiter {
 public:
  // Makes a waiter that polls as `mode` says. The first wait of a thread sets
  // the mode for all waits of that thread.
  explicit Waiter(progress::PollingMode mode) : mode_(mode) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Adds a token, and wakes one waiting thread. Blocks only for a short lock.
  // May be called in callbacks.
  void Notify();
  // Acquires a token. Blocks until a token is available. Returns false if none
  // is available within `timeout`. A timeout of zero polls once. Hold no lock
  // that a callback takes, and do not call this function in a callback. Any
  // number of threads may wait.
  bool Wait(absl::Duration timeout);

 private:
  bool TryTake();
  bool has_token() const { return tokens_.load(std::memory_order_acquire) > 0; }
  // Sleeps until there is a token, or until `deadline` of SteadyNow(). Returns
  // true if there is a token.
  bool SleepUntil(absl::Time deadline);
  bool PollOrSleepUntil(absl::Time deadline);

  const progress::PollingMode mode_;
  std::atomic<int> tokens_{0};
  std::mutex mu_;
  std::condition_variable added_;
  std::atomic<int> sleepers_{0};
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_WAITER_H_
