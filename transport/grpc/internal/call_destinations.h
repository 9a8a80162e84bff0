// Attaches memory to a gRPC call. The call's transport receives messages into
// this memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_CALL_DESTINATIONS_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_CALL_DESTINATIONS_H_

#include <memory>

#include "grpcpp/client_context.h"
#include "transport/memory/destinations.h"

struct grpc_call_context_element;

namespace penstock {
namespace core {

// Attaches `destinations` to the call, and replaces earlier destinations. The
// call's context keeps a reference. All attempts of the call share the context,
// which never leaves the process. Call after the call was created and before
// the call starts. Does nothing if the call does not exist yet, or if the
// loaded gRPC is not the release that Penstock was built for.
void AttachDestinations(grpc::ClientContext* context,
                        std::shared_ptr<memory::Destinations> destinations);

// Returns the destinations of the call with this context, or null. The caller
// may drop the last reference under a lock, because the destinations are
// destroyed only after the lock is released (late_slices.h).
std::shared_ptr<memory::Destinations> DestinationsOf(
    const grpc_call_context_element* context);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_CALL_DESTINATIONS_H_
