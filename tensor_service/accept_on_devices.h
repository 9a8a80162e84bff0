// How a service says that its requests may lie on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_ACCEPT_ON_DEVICES_H_
#define PENSTOCK_TENSOR_SERVICE_ACCEPT_ON_DEVICES_H_

#include <initializer_list>

#include "absl/strings/string_view.h"
#include "tensor_service/device_tensors.h"

namespace penstock::tensor {

// With DeviceTensors::kKeep, has the transport leave requests on devices whose
// methods begin so (DirectReceiver::AcceptAt()); not where this process has no
// DirectReceiver, or no DeviceMemory, without which nothing could read them.
void AcceptOnDevices(DeviceTensors device_tensors,
                     std::initializer_list<absl::string_view> path_prefixes);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_ACCEPT_ON_DEVICES_H_
