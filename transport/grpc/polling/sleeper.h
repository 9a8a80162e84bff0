// Counts the threads that wait for events of gRPC's descriptors.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_SLEEPER_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_SLEEPER_H_

#include "src/core/lib/iomgr/closure.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Counts the current thread while it waits in epoll1's pollset_work():
//
//   Sleeper sleeper;
//   engine.pollset_work(pollset, worker, deadline);
//   if (sleeper.is_scheduled()) flush the ExecCtx, without locks
//
// While a thread is counted, one of the counted threads handles each event as
// soon as the event comes. epoll1 chooses this thread as designated poller; it
// also handles earlier events that epoll1 has taken from the kernel. The count
// ends before the closures of the first event run, because a closure may block.
//
// Used by one thread, in an ExecCtx.
class Sleeper {
 public:
  Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Returns true if pollset_work() ran no closures, because a kick ended it at
  // once. The ExecCtx must be flushed while this object lives.
  bool is_scheduled() const { return is_scheduled_; }

  // Returns true if the process has a counted thread. Thread-safe without
  // locks.
  static bool Any();

 private:
  static void OnWakeUp(void* self, grpc_error_handle error);

  grpc_closure on_wake_up_;
  bool is_scheduled_ = true;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_SLEEPER_H_
