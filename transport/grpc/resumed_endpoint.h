// Lets stock HTTP/2 begin on a connection on which the negotiation has sent the
// client's preface and a SETTINGS frame.

#ifndef PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Returns an endpoint for the HTTP/2 transport, and takes ownership of `inner`.
// Drops the preface that the transport writes, because the peer has it already.
// Drops the peer's acknowledgement of the negotiation's SETTINGS. `received` is
// what the negotiation has read; `*rest` is set to what the transport must get
// of it.
grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner,
                                  absl::string_view received,
                                  std::string* rest);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
