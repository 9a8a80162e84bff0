// Makes threads that wait in gRPC poll Penstock's fast paths and gRPC's sockets
// before they sleep.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_ENGINE_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_ENGINE_H_

namespace penstock {
namespace core {

// Returns true if Penstock wraps gRPC's polling engine. This happens before
// main(), and fails if gRPC was in use when this library was loaded.
//
// The wrapper replaces the engine "epoll1" under the same name, because gRPC's
// fork handlers and GRPC_POLL_STRATEGY use this name. The wrapper changes
// nothing while the process has neither a channel nor a server over Penstock.
// With another polling strategy, only doorbells wake waiting threads.
bool PollingIsWrapped();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_POLLING_ENGINE_H_
