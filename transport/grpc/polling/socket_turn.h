// A polling turn for the descriptors in gRPC's epoll set.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_TURN_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_TURN_H_

#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/pollset.h"

namespace penstock {
namespace core {

// Handles events of the descriptors and runs their closures. Ends when there
// are no more events or when the turn is over. Returns true if there may be
// more events. Does not sleep. Call without holding `mu`, the pollset's lock.
// `engine` must be epoll1.
bool TakeSocketTurn(const grpc_event_engine_vtable& engine,
                    grpc_pollset* pollset, gpr_mu* mu,
                    grpc_pollset_worker** worker);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_TURN_H_
