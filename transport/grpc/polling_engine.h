// Lets the threads that wait in gRPC poll Penstock's fabrics before they sleep.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_

namespace penstock {
namespace core {

// Whether gRPC's polling could be wrapped: not where gRPC was in use already
// when this library was loaded. It is, before main(), by a vtable
// that stands in for "epoll1": gRPC's fork handlers and GRPC_POLL_STRATEGY know
// it by that name. A process without fabrics to poll does not notice. Where
// another strategy is chosen, doorbells alone wake the waiting threads.
bool PollingIsWrapped();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_ENGINE_H_
