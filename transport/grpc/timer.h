// One time limit of an object, on gRPC's own clock.

#ifndef PENSTOCK_TRANSPORT_GRPC_TIMER_H_
#define PENSTOCK_TRANSPORT_GRPC_TIMER_H_

#include <functional>

#include "absl/time/time.h"
#include "src/core/lib/gprpp/time.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/timer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// The time of gRPC's clock, for what is pure and does not know that. In an
// ExecCtx.
absl::Time Now();

// Everything but the callback runs under the owner's lock, in an ExecCtx.
class Timer {
 public:
  // Called exactly once for each Start(), from an ExecCtx, without locks: with
  // true when the time is over, with false after Cancel(). Under the lock it
  // calls Ended() before anything else. The owner stays alive until then.
  using Callback = std::function<void(bool expired)>;

  // Not while pending.
  void Start(grpc_core::Duration delay, Callback callback);
  void Cancel();
  void Ended() { pending_ = false; }
  // Cancelled ones are pending until their callback has come.
  bool pending() const { return pending_; }

 private:
  bool pending_ = false;
  Callback callback_;
  grpc_timer timer_;
  grpc_closure closure_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TIMER_H_
