// A timer of an object that is shared and has a lock.

#ifndef PENSTOCK_TRANSPORT_RPC_LOOP_TIMER_H_
#define PENSTOCK_TRANSPORT_RPC_LOOP_TIMER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace rpc {

// Call everything under the owner's lock. The callback takes that lock, and
// then asks TakeExpired().
class LoopTimer {
 public:
  explicit LoopTimer(progress::EventLoop* loop) : loop_(loop) {}

  // Calls `callback` with a number on the loop's thread, after `delay`, unless
  // it is cancelled or started anew before.
  void Start(absl::Duration delay, std::function<void(uint64_t)> callback) {
    Cancel();
    const uint64_t start = ++starts_;
    id_ = loop_->RunAfter(
        delay, [callback = std::move(callback), start] { callback(start); });
  }
  void Cancel() {
    if (id_ != 0) loop_->Cancel(std::exchange(id_, 0));
  }
  bool pending() const { return id_ != 0; }
  // For the callback: returns whether its time is over. If not, the timer was
  // cancelled while the callback waited for the lock.
  bool TakeExpired(uint64_t start) {
    return start == starts_ && std::exchange(id_, 0) != 0;
  }

 private:
  progress::EventLoop* const loop_;
  progress::EventLoop::Id id_ = 0;
  uint64_t starts_ = 0;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_LOOP_TIMER_H_
