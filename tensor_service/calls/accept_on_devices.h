// Lets a service accept requests whose tensors are on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_ACCEPT_ON_DEVICES_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_ACCEPT_ON_DEVICES_H_

#include <initializer_list>

#include "absl/strings/string_view.h"
#include "tensor_service/device_tensors.h"

namespace penstock::tensor {

// With DeviceTensors::kKeep, asks the transport to leave requests on devices if
// their method begins with one of the prefixes (DirectReceiver::AcceptAt()).
// Does nothing in a process without a DirectReceiver or without DeviceMemory,
// because nothing there could read such requests.
void AcceptOnDevices(DeviceTensors device_tensors,
                     std::initializer_list<absl::string_view> path_prefixes);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_ACCEPT_ON_DEVICES_H_
