// Blocks until a callback was called.

#ifndef PENSTOCK_PS_CLIENT_AWAITED_H_
#define PENSTOCK_PS_CLIENT_AWAITED_H_

#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "ps/client/call_loop.h"

namespace penstock::ps {

// Waits for the argument of a callback. Make the object before the call starts.
// The object must live until Wait() has returned.
template <typename T>
class Awaited {
 public:
  // Waits for a callback of `loop`. Wait() may run the loop meanwhile.
  explicit Awaited(CallLoop* loop) { turn_.emplace(loop); }
  // Waits for a callback on any other thread.
  Awaited() = default;

  // Returns the callback that ends Wait(). Call once.
  std::function<void(T)> Callback() {
    return [this](T value) {
      value_ = std::move(value);
      came_.Notify();
    };
  }

  T Wait() {
    if (turn_.has_value()) {
      turn_->Await(came_);
    } else {
      came_.WaitForNotification();
    }
    return std::move(*value_);
  }

 private:
  absl::optional<T> value_;
  absl::Notification came_;
  absl::optional<CallLoop::Turn> turn_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_AWAITED_H_
