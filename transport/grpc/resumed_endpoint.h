// Lets stock HTTP/2 begin on a connection where the negotiation has already
// sent the client's preface and a SETTINGS frame.

#ifndef PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_

#include "src/core/lib/iomgr/endpoint.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Takes `inner`. Drops the preface that the transport on top writes first: the
// peer has it.
grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
