// Runs a front end's tasks later.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_
#define PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// A clock, and an executor of tasks. gRPC's front end uses gRPC's clock and
// timers. Other front ends use an event loop. Thread-safe. Runs tasks without
// locks, and never within the call that adds a task.
class Executor {
 public:
  // Identifies a task of RunAfter(). Zero means no task.
  using Id = uint64_t;

  virtual ~Executor() = default;
  // Returns the time of the clock that keepalive uses.
  virtual absl::Time Now() const = 0;
  // Runs `task` soon. Tasks start in the order of the calls.
  virtual void Post(std::function<void()> task) = 0;
  // Runs `task` once with true, after at least `delay`. If Cancel() is called
  // before, runs `task` with false, or drops `task`.
  virtual Id RunAfter(absl::Duration delay,
                      std::function<void(bool is_due)> task) = 0;
  // Cancels a task. Call this function only for a task that has not returned.
  virtual void Cancel(Id id) = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_
