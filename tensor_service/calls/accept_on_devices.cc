#include "tensor_service/calls/accept_on_devices.h"

#include "tensor_service/device_memory.h"
#include "tensor_service/direct_receive.h"

namespace penstock::tensor {

void AcceptOnDevices(DeviceTensors device_tensors,
                     std::initializer_list<absl::string_view> path_prefixes) {
  DirectReceiver* const receiver = GetDirectReceiver();
  if (device_tensors != DeviceTensors::kKeep || receiver == nullptr ||
      GetDeviceMemory() == nullptr) {
    return;
  }
  for (absl::string_view prefix : path_prefixes) receiver->AcceptAt(prefix);
}

}  // namespace penstock::tensor
