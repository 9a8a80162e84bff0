// Lets stock HTTP/2 begin on a connection where the negotiation has already
// sent the client's preface and a SETTINGS frame.

#ifndef PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Takes `inner`. Drops the preface that the transport on top writes first, for
// the peer has it, and the peer's acknowledgement of the negotiation's
// SETTINGS. `received` has been read already; `*rest` is what the transport is
// to have of it.
grpc_endpoint* NewResumedEndpoint(grpc_endpoint* inner,
                                  absl::string_view received,
                                  std::string* rest);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_RESUMED_ENDPOINT_H_
