// Waits for what a call that was started calls back with.

#ifndef PENSTOCK_PS_CLIENT_AWAITED_H_
#define PENSTOCK_PS_CLIENT_AWAITED_H_

#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"

namespace penstock::ps {

// Must live until Wait() has returned.
template <typename T>
class Awaited {
 public:
  // To be called once, on another thread.
  std::function<void(T)> Callback() {
    return [this](T value) {
      value_ = std::move(value);
      came_.Notify();
    };
  }

  T Wait() {
    came_.WaitForNotification();
    return std::move(*value_);
  }

 private:
  absl::optional<T> value_;
  absl::Notification came_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_AWAITED_H_
