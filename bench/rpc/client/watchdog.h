// Ends the program if nothing makes progress. Every RPC has a deadline, but a
// transport that hangs may keep the deadline from firing. A stream has no
// deadline.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_WATCHDOG_H_
#define PENSTOCK_BENCH_RPC_CLIENT_WATCHDOG_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"

namespace penstock {
namespace bench {

// Owns a thread. After 15 seconds without Progress() or SetLabel(), the thread
// prints an error with the current label and ends the process with code 1. 15
// seconds exceed an RPC's deadline of ten.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Reports a completed operation. Any thread may call it. Costs one atomic
  // addition.
  void Progress() { progress_.fetch_add(1, std::memory_order_relaxed); }

  // Sets the label for the error message.
  void SetLabel(const std::string& label);

 private:
  void Watch();

  std::atomic<uint64_t> progress_{0};
  std::mutex mu_;
  std::condition_variable wake_;
  std::string label_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last, because it uses all other members
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_WATCHDOG_H_
