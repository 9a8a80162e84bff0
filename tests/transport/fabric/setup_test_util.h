// Records the results of attempts to connect, for tests of fabrics.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SETUP_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SETUP_TEST_UTIL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "transport/fabric/attempt.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {

// An attempt to connect, and its result.
class Told {
 public:
  explicit Told(const std::string& token = "token")
      : attempt_(std::make_shared<Attempt>(
            token, [state = state_](const auto& result) {
              absl::MutexLock lock(&state->mu);
              ++state->calls;
              state->status = result.status();
            })) {}

  // Moves the attempt to the caller, who finishes the attempt.
  std::shared_ptr<Attempt> Give() { return std::move(attempt_); }

  // Waits for the callback.
  absl::Status Wait() const {
    absl::MutexLock lock(&state_->mu);
    state_->mu.Await(absl::Condition(
        +[](State* state) { return state->calls > 0; }, state_.get()));
    return state_->status;
  }
  int calls() const {
    absl::MutexLock lock(&state_->mu);
    return state_->calls;
  }

 private:
  struct State {
    absl::Mutex mu;
    int calls = 0;
    absl::Status status;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_ptr<Attempt> attempt_;
};

inline progress::EventLoop* Loop() {
  return progress::EventLoop::Get().value();
}

// Returns once all tasks that were posted to the loop before, and all due
// timers, have run.
inline void DrainLoop() {
  absl::Notification posted;
  Loop()->Post([&posted] { posted.Notify(); });
  posted.WaitForNotification();
  absl::Notification due;
  Loop()->RunAfter(absl::ZeroDuration(), [&due] { due.Notify(); });
  due.WaitForNotification();
}

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SETUP_TEST_UTIL_H_
