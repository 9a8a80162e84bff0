// Handles received tensors that are on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// The treatment of a received tensor that is in the peer's device memory and
// has no destination.
enum class DeviceTensors {
  // Copies the tensor to the heap, as if the tensor had arrived on the host.
  kToHost,
  // Leaves the tensor on the device if it is aligned for its type; otherwise
  // copies it to the heap. The tensor is read-only. The peer's memory is held
  // until the tensor is dropped: copy the tensor by CopyTo(), or drop it soon.
  kKeep,
};

// Returns a bundle in which this process owns all device tensors: tensors on
// devices are replaced by read-only copies on the same device, or on the heap
// if the device has no memory left. Other tensors are those of `bundle`. Makes
// the copies to each device, and to the heap, as one batch, and blocks until
// they are complete. Returns the errors of DeviceMemory, and RESOURCE_EXHAUSTED
// if the host has no memory either.
absl::StatusOr<Bundle> OwnOnDevices(const Bundle& bundle);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_
