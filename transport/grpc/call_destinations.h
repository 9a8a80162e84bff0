// Attaches memory to a call of gRPC's, for its transport to receive into.

#ifndef PENSTOCK_TRANSPORT_GRPC_CALL_DESTINATIONS_H_
#define PENSTOCK_TRANSPORT_GRPC_CALL_DESTINATIONS_H_

#include <memory>

#include "grpcpp/client_context.h"
#include "transport/memory/destinations.h"

struct grpc_call_context_element;

namespace penstock {
namespace core {

// Attaches the destinations to the call, and replaces earlier destinations. The
// call keeps a share in its context, a table of pointers that all attempts at
// the call share and that never leaves the process. Call it between the making
// of the call and its start. Does nothing before that, and with a gRPC that
// this was not built for.
void AttachDestinations(grpc::ClientContext* context,
                        std::shared_ptr<memory::Destinations> destinations);

// Returns what was attached to the call with this context, or null. The last
// share may be dropped under a lock: what it owns is released later
// (late_slices.h).
std::shared_ptr<memory::Destinations> DestinationsOf(
    const grpc_call_context_element* context);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CALL_DESTINATIONS_H_
