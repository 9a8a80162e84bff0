// Keeps the memory of devices from whoever would have the CPU read it.

#ifndef PENSTOCK_TRANSPORT_GRPC_DEVICE_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_DEVICE_FILTER_H_

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Has gRPC ask, for each connection of the process's, Penstock's or not,
// whether the process has devices (memory::DevicesOfProcess()). If so, the
// connection's calls pass a filter above all that reads messages:
//
//   a message is sent      goes on when its slices on devices are ready, as do
//                          the operations of the call behind it, and replaces
//                          them by copies on the host, unless a path of
//                          Penstock's takes them from there, and nothing
//                          compresses the call; no thread waits
//   a message is received  replaces its slices on devices by copies on the
//                          host, unless the call accepts them (Destinations,
//                          AcceptDeviceSlices())
//
// If not, nothing is added to them, and there can be no devices any more.
void RegisterDeviceFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DEVICE_FILTER_H_
