// A turn of the descriptors that gRPC's epoll set watches.

#ifndef PENSTOCK_TRANSPORT_GRPC_SOCKET_TURN_H_
#define PENSTOCK_TRANSPORT_GRPC_SOCKET_TURN_H_

#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/pollset.h"

namespace penstock {
namespace core {

// Handles what the descriptors have, until there is no more or the turn is
// over, and runs the closures. Returns whether there may be more. Does not
// sleep. Call it without the pollset's lock, which is `mu`; `engine` is epoll1.
bool TakeSocketTurn(const grpc_event_engine_vtable& engine,
                    grpc_pollset* pollset, gpr_mu* mu,
                    grpc_pollset_worker** worker);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_SOCKET_TURN_H_
