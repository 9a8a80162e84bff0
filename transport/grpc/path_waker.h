// Hears of a fast path's input while all threads sleep, where the path has
// descriptors for that.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_

#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric/fabric.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// One descriptor; it is among those that gRPC's threads wait for, so that the
// woken thread is one that waits for the application. With a GRPC_POLL_STRATEGY
// other than epoll1 there is no such common set; then our event loop's thread
// looks.
class PathWaker {
 public:
  // `wake` is called without locks, from an ExecCtx, on any thread; it clears
  // the wake-up. It is dropped, with what it owns, some time after Stop().
  using Wake = std::function<void()>;

  virtual ~PathWaker() = default;
  // No new call of `wake` begins after this, and the path's descriptor is let
  // go of soon. May be called from within `wake`, in an ExecCtx.
  virtual void Stop() = 0;

  // One for each of the path's descriptors. In an ExecCtx.
  static std::vector<std::shared_ptr<PathWaker>> Start(
      const std::shared_ptr<fabric::Endpoint>& path, const Wake& wake);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
