// Wakes a thread for a fast path's input while all threads sleep, if the path
// has descriptors for that.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_

#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric/fabric.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Watches one descriptor. Adds it to the set on which gRPC's threads wait, so
// that the woken thread is one that waits for the application. With a
// GRPC_POLL_STRATEGY other than epoll1 there is no such set, and the event
// loop's thread watches instead.
class PathWaker {
 public:
  // Called when the descriptor is readable, from an ExecCtx, on any thread,
  // without locks. Must clear the path's wake-up. Destroyed, with what it owns,
  // some time after Stop().
  using Wake = std::function<void()>;

  virtual ~PathWaker() = default;
  // Stops watching: no call of `wake` begins any more, and the path is released
  // soon. Call it in an ExecCtx. May be called from within `wake`.
  virtual void Stop() = 0;

  // Returns a waker for each of the path's descriptors. The wakers keep the
  // path, which owns the descriptors. Call it in an ExecCtx.
  static std::vector<std::shared_ptr<PathWaker>> Start(
      const std::shared_ptr<fabric::Endpoint>& path, const Wake& wake);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_WAKER_H_
