#include "transport/grpc/polling/plain_tcp.h"

#include <sys/eventfd.h>

#include <atomic>

#include "src/core/lib/iomgr/tcp_posix.h"
#include "src/core/lib/resource_quota/resource_quota.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace core {
namespace {

// The first members of gRPC's endpoints over plain TCP, which gRPC does not
// export.
struct TcpEndpoint {
  grpc_endpoint base;
  grpc_fd* socket;
};

grpc_fd* SocketOf(const grpc_endpoint& endpoint) {
  return reinterpret_cast<const TcpEndpoint&>(endpoint).socket;
}

// Returns the function table of gRPC's endpoints over plain TCP, which tells
// them from others. gRPC does not export the table, so it is taken from an
// endpoint that is created here. Returns null if no descriptor is left. Also
// returns null if that endpoint's members are not those of TcpEndpoint.
const grpc_endpoint_vtable* FindTcpFunctions() {
  base::UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return nullptr;
  grpc_core::PosixTcpOptions options;
  options.resource_quota = grpc_core::ResourceQuota::Default();
  grpc_fd* const socket =
      grpc_fd_create(fd.Release(), "penstock-tcp", /*track_err=*/false);
  grpc_endpoint* const endpoint = grpc_tcp_create(socket, options, "");
  const grpc_endpoint_vtable* const functions =
      SocketOf(*endpoint) == socket ? endpoint->vtable : nullptr;
  grpc_endpoint_destroy(endpoint);
  return functions;
}

}  // namespace

grpc_fd* PlainTcpSocket(const grpc_endpoint& endpoint) {
  static std::atomic<const grpc_endpoint_vtable*> found{nullptr};
  const grpc_endpoint_vtable* functions = found.load(std::memory_order_relaxed);
  if (functions == nullptr) {
    functions = FindTcpFunctions();
    found.store(functions, std::memory_order_relaxed);
  }
  return endpoint.vtable == functions ? SocketOf(endpoint) : nullptr;
}

}  // namespace core
}  // namespace penstock
