// Wakes a sleeping thread when a fast path has input. The path must have
// descriptors for wake-ups.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_

#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric/fabric.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// A watch on one descriptor of a path. With epoll1, adds the descriptor to the
// epoll set in which gRPC's threads sleep, so that one of these threads wakes.
// With another GRPC_POLL_STRATEGY, Penstock's event loop watches the
// descriptor.
class PathWaker {
 public:
  // A function that is called when the descriptor is readable: from an ExecCtx,
  // on any thread, without locks. The function must clear the path's wake-up.
  // The waker destroys the function at some time after Stop().
  using Wake = std::function<void()>;

  virtual ~PathWaker() = default;
  // Stops watching. No call of `wake` begins afterwards, and the path is
  // released soon. Call in an ExecCtx. May be called from within `wake`.
  virtual void Stop() = 0;

  // Returns one waker for each of the path's descriptors. The wakers hold
  // references to the path, which owns the descriptors. Call in an ExecCtx.
  static std::vector<std::shared_ptr<PathWaker>> Start(
      const std::shared_ptr<fabric::Endpoint>& path, const Wake& wake);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
