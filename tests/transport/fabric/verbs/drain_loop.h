// Waits for the process's event loop.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_DRAIN_LOOP_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_DRAIN_LOOP_H_

#include <condition_variable>
#include <mutex>

#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Waits until the event loop has done its current work. Runs several rounds,
// because one round may create work for the next.
inline void DrainLoop(int rounds = 3) {
  progress::EventLoop* const loop = progress::EventLoop::Get().value();
  for (int round = 0; round < rounds; ++round) {
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    loop->Post([&] {
      std::lock_guard<std::mutex> lock(mu);
      done = true;
      changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return done; });
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_DRAIN_LOOP_H_
