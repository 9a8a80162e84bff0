// A timer on gRPC's clock.

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

// Returns the time of gRPC's clock, for code that does not know gRPC. Call it
// in an ExecCtx.
absl::Time Now();

// Call everything under the owner's lock, in an ExecCtx.
class Timer {
 public:
  // Called exactly once for each Start(), from an ExecCtx, without locks, with
  // true when the time is over, or with false after Cancel(). Must take the
  // lock and first call Ended(). The owner must stay alive until then.
  using Callback = std::function<void(bool expired)>;

  // Needs !pending().
  void Start(grpc_core::Duration delay, Callback callback);
  // Makes the callback come soon. Does nothing if it has come, or comes now.
  void Cancel();
  void Ended() { pending_ = false; }
  // Whether Ended() is still to be called, as it is after Cancel(), too.
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
