// Starts stock HTTP/2 on a connection after the negotiation has sent the
// client's preface and a SETTINGS frame.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_RESUMED_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_RESUMED_ENDPOINT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns an endpoint for the HTTP/2 transport. Takes ownership of `inner`. The
// endpoint drops:
//  - the preface that the transport writes, because the peer has received it;
//  - the peer's acknowledgement of the negotiation's SETTINGS.
//
// `received` are the bytes that the negotiation has read. Sets `*rest` to the
// part of `received` that the transport must get.
grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner,
                                  absl::string_view received,
                                  std::string* rest);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_RESUMED_ENDPOINT_H_
