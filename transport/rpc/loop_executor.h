// Runs tasks of connections on an event loop.

#ifndef PENSTOCK_TRANSPORT_RPC_LOOP_EXECUTOR_H_
#define PENSTOCK_TRANSPORT_RPC_LOOP_EXECUTOR_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"
#include "transport/connection/executor.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace rpc {

class LoopExecutor final : public connection::Executor {
 public:
  // Runs tasks on `loop`, which must be the result of
  // EventLoop::GetPolling(mode).
  LoopExecutor(progress::EventLoop* loop, progress::PollingMode mode)
      : loop_(loop), mode_(mode) {}

  absl::Time Now() const override { return base::SteadyNow(); }
  // Runs the task on the loop. In a forked child, runs the task on a loop of
  // the child.
  void Post(std::function<void()> task) override {
    if (!loop_->IsForeign()) return loop_->Post(std::move(task));
    const absl::StatusOr<progress::EventLoop*> loop =
        progress::EventLoop::GetPolling(mode_);
    if (loop.ok()) (*loop)->Post(std::move(task));
  }
  // Does nothing in a forked child. Cancel() does nothing there either.
  Id RunAfter(absl::Duration delay,
              std::function<void(bool is_due)> task) override {
    return loop_->RunAfter(delay, [task = std::move(task)] { task(true); });
  }
  void Cancel(Id id) override { loop_->Cancel(id); }

 private:
  progress::EventLoop* const loop_;
  const progress::PollingMode mode_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_LOOP_EXECUTOR_H_
