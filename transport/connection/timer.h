// Timers for the parts of a connection.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_TIMER_H_
#define PENSTOCK_TRANSPORT_CONNECTION_TIMER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "transport/connection/executor.h"

namespace penstock {
namespace connection {

// Lets a part of a connection enter the connection from another thread.
class Host {
 public:
  virtual ~Host() = default;
  virtual Executor* executor() const = 0;
  // Returns a reference to the connection. Any thread may drop the reference.
  virtual std::shared_ptr<Host> Share() = 0;
  // Calls `work` under the connection's lock, then sends the output that `work`
  // has added. The caller holds a reference and no locks.
  virtual void Enter(absl::FunctionRef<void()> work) = 0;
};

// A timer of a connection. Call all functions under the connection's lock.
class Timer {
 public:
  // `host` is the connection that owns the timer.
  explicit Timer(Host* host) : host_(host) {}

  // Calls `expired` under the connection's lock, after `delay`, unless the
  // timer is cancelled or restarted before. While the timer is pending, holds a
  // reference to the connection.
  void Start(absl::Duration delay, std::function<void()> expired);
  void Cancel();
  bool pending() const { return id_ != 0; }

 private:
  void OnDue(uint64_t start, const std::function<void()>& expired);

  Host* const host_;
  Executor::Id id_ = 0;
  uint64_t starts_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_TIMER_H_
