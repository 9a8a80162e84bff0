// Makes the threads that wait in gRPC poll Penstock's fast paths before they
// sleep.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_

namespace penstock {
namespace core {

// Returns true if gRPC's polling is wrapped. The wrapping is done before
// main(), and fails if gRPC was already in use when this library was loaded.
// The wrapper replaces the engine "epoll1" under that name, which gRPC's fork
// handlers and GRPC_POLL_STRATEGY use, and changes nothing while there is no
// fast path. With another strategy, only doorbells wake the waiting threads.
bool PollingIsWrapped();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_
