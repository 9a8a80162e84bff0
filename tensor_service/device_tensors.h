// What becomes of tensors on devices that others have sent.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_

#include "absl/status/statusor.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// A transport may hand up a message of which parts lie on a device, in memory
// of the peer's. What to do with a tensor there that has no destination.
enum class DeviceTensors {
  // Copy it to the heap, as if it had come to the host.
  kToHost,
  // Leave it where it is, if it is aligned for its type; else copy it to the
  // heap. It is read-only, stays the peer's, and is held there until the tensor
  // goes: copy it, by CopyTo(), or drop it soon.
  kKeep,
};

// Returns a bundle in which those tensors that lie on devices are copies, in
// read-only memory of this process's own: on the same device, or on the heap if
// that device has no memory left. The others are those of `bundle`. All copies
// are made as one batch, or as two if there are copies of both kinds. Blocks
// until they are made. Returns the errors of DeviceMemory, and
// RESOURCE_EXHAUSTED if there is no memory on the host either.
absl::StatusOr<Bundle> OwnOnDevices(const Bundle& bundle);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_TENSORS_H_
