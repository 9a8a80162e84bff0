// Finds the sockets of gRPC's endpoints over plain TCP.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_

#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns gRPC's entry for the socket of `endpoint`, which owns the entry. A
// caller can receive from the socket, and be notified of its input, while the
// endpoint has no read in flight. Returns null if the bytes of the endpoint are
// not the bytes of the socket, as with TLS. Thread-safe.
grpc_fd* PlainTcpSocket(const grpc_endpoint& endpoint);

// Returns true if the bytes of `endpoint` are those of its socket. Thread-safe.
inline bool IsPlainTcp(const grpc_endpoint& endpoint) {
  return PlainTcpSocket(endpoint) != nullptr;
}

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_
