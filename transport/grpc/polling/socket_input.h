// Receives from the socket of a gRPC endpoint, without the endpoint.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_INPUT_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_INPUT_H_

#include <memory>

#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// A second descriptor of a plain TCP endpoint's socket. Through this
// descriptor, the caller receives into any memory, while gRPC's endpoint could
// only read into slices of its own. The endpoint still writes.
//
// Use while the endpoint has no read in flight, in an ExecCtx. Destroy before
// the endpoint. Thread-compatible.
class SocketInput {
 public:
  // Returns null if the endpoint's bytes are not the bytes of the socket, as
  // with TLS. Also returns null if the process has few descriptors left, or if
  // gRPC cannot watch a second descriptor.
  static std::unique_ptr<SocketInput> Create(grpc_endpoint* endpoint);
  ~SocketInput();
  SocketInput(const SocketInput&) = delete;
  SocketInput& operator=(const SocketInput&) = delete;

  int fd() const { return grpc_fd_wrapped_fd(fd_); }
  // Schedules `closure` once when the socket has input or has ended. Receive
  // all input before the call, because only new input is noticed.
  void Notify(grpc_closure* closure) { grpc_fd_notify_on_read(fd_, closure); }
  // Schedules the closure that waits.
  void Wake() { grpc_fd_set_readable(fd_); }

 private:
  explicit SocketInput(int fd)
      : fd_(grpc_fd_create(fd, "penstock-input", /*track_err=*/false)) {}

  // Returns true if gRPC's poller watches the descriptor. gRPC does not report
  // a failure to add the descriptor. Without this check, input could stay
  // unnoticed forever.
  bool IsWatched() const;

  grpc_fd* const fd_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_INPUT_H_
