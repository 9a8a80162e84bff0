// Polls gRPC's descriptors before the thread that waits for them sleeps.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_SPIN_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_SPIN_H_

#include <functional>

#include "absl/time/time.h"
#include "src/core/lib/gprpp/time.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/pollset.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace core {

// The objects that a spin uses. They must outlive the spin.
struct SpinSources {
  // Returns true if gRPC's descriptors may have events. Consumes none.
  std::function<bool()> may_have_events;
  progress::PollSet* paths;
  progress::SpinPolicy* policy;
};

// Makes one call of epoll1's pollset_work() spin before it sleeps in
// epoll_wait():
//
//   SocketSpin spin(sources, worker, deadline);
//   engine.pollset_work(pollset, spin.worker(), spin.deadline());
//
// In a process, at most one thread sleeps in epoll_wait(): the designated
// poller. The other threads wait until they become the designated poller. Only
// the designated poller spins, and keeps its role while it spins. Otherwise
// another thread would enter epoll_wait(), and each event would wake that
// thread.
//
// gRPC has no hook between the designation and epoll_wait(). But gRPC reads the
// time at that point, to compute the timeout. This object is the thread's
// source of time during the call, and spins when gRPC first reads the time.
// gRPC holds no lock then.
//
// Used by one thread, in an ExecCtx.
class SocketSpin : public grpc_core::Timestamp::ScopedSource {
 public:
  SocketSpin(const SpinSources& sources, grpc_pollset_worker** worker,
             grpc_core::Timestamp deadline);

  // Returns the arguments of pollset_work().
  grpc_pollset_worker** worker() { return worker_; }
  // Returns a deadline that is never infinite, because gRPC does not read the
  // time if the deadline is infinite.
  grpc_core::Timestamp deadline() const { return deadline_; }

  grpc_core::Timestamp Now() override;

 private:
  enum class Spun {
    kNothing,  // the thread is about to sleep
    kEvents,   // epoll_wait() would return immediately
    kPaths,    // paths delivered input: epoll_wait() must not sleep
  };

  Spun Spin();
  Spun SpinFor(absl::Duration budget);
  static void OnWakeUp(void* self, grpc_error_handle error);

  const SpinSources& sources_;
  grpc_pollset_worker* own_worker_ = nullptr;
  grpc_pollset_worker** const worker_;
  const grpc_core::Timestamp deadline_;
  bool has_begun_ = false;
  absl::Time start_;
  grpc_closure on_wake_up_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_SPIN_H_
