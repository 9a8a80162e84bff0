// Runs a front end's work later.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_
#define PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// gRPC's front end has gRPC's clock and timers, others an event loop.
// Thread-safe. Runs tasks without locks, and never within the call that adds
// them.
class Executor {
 public:
  // Identifies a task of RunAfter(). Zero identifies none.
  using Id = uint64_t;

  virtual ~Executor() = default;
  // Returns the time of the clock that keepalive counts by.
  virtual absl::Time Now() const = 0;
  // Runs `task` soon. Keeps the order of the calls.
  virtual void Post(std::function<void()> task) = 0;
  // Runs `task` once, not before `delay` has passed. After Cancel(), runs it
  // with false or drops it.
  virtual Id RunAfter(absl::Duration delay,
                      std::function<void(bool is_due)> task) = 0;
  // Cancels a task. Call only for a task that has not returned.
  virtual void Cancel(Id id) = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_EXECUTOR_H_
