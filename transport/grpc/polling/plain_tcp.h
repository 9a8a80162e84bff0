// Recognizes gRPC's endpoints over plain TCP.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_

#include "src/core/lib/iomgr/endpoint.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns true if the bytes of `endpoint` are the bytes of its socket. Returns
// false with TLS. Thread-safe.
bool IsPlainTcp(const grpc_endpoint& endpoint);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_PLAIN_TCP_H_
