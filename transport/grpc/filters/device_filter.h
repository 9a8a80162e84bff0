// A gRPC filter that replaces slices in device memory by host copies, unless
// the receiver of the slices accepts device memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_FILTER_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_FILTER_H_

#include "src/core/lib/config/core_configuration.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Registers the filter for messages on devices. For each new connection, with
// or without Penstock, checks whether the process has devices
// (memory::DevicesOfProcess()). If so, adds a filter above all filters that
// read messages:
//
//  - A sent message waits until its device slices are ready. Later send
//    operations of the call wait too, but no thread blocks. Then the filter
//    replaces the device slices by host copies, unless a Penstock path sends
//    them from the device and no filter compresses the call.
//  - In a received message, the filter replaces device slices by host copies,
//    unless the call accepts device slices (Destinations,
//    AcceptDeviceSlices()).
//
// If the process has no devices, adds no filter. From then on, the process can
// add no devices.
void RegisterDeviceFilter(grpc_core::CoreConfiguration::Builder* builder);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_FILTER_H_
