// Waits for what a call that was started calls back with.

#ifndef PENSTOCK_PS_CLIENT_AWAITED_H_
#define PENSTOCK_PS_CLIENT_AWAITED_H_

#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "ps/client/call_loop.h"

namespace penstock::ps {

// Must live until Wait() has returned. Make it before what calls back is
// started.
template <typename T>
class Awaited {
 public:
  // Of a call of `loop`, which Wait() may run meanwhile.
  explicit Awaited(CallLoop* loop) { turn_.emplace(loop); }
  // Of anything that calls back on another thread.
  Awaited() = default;

  // To be called once.
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
