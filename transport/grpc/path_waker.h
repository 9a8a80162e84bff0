// Wakes a thread when a fast path has input while all threads sleep. Needs a
// path with descriptors for wake-ups.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_

#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric/fabric.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// A watch on one descriptor of a path. The descriptor is in the set on which
// gRPC's threads wait, so that a thread that waits for the application wakes.
// If GRPC_POLL_STRATEGY is not epoll1, this set does not exist, and the event
// loop's thread watches instead.
class PathWaker {
 public:
  // Handles an event: called when the descriptor is readable, from an ExecCtx,
  // on any thread, without locks. Must clear the path's wake-up. The waker
  // destroys the function some time after Stop().
  using Wake = std::function<void()>;

  virtual ~PathWaker() = default;
  // Stops watching. No call of `wake` begins afterwards, and the path is
  // released soon. Call in an ExecCtx. May be called from within `wake`.
  virtual void Stop() = 0;

  // Returns a waker for each descriptor of the path. The wakers share ownership
  // of the path, which owns the descriptors. Call in an ExecCtx.
  static std::vector<std::shared_ptr<PathWaker>> Start(
      const std::shared_ptr<fabric::Endpoint>& path, const Wake& wake);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
