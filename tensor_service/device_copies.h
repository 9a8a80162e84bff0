// What a message brings from devices, and for destinations on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Gathers copies from and to devices while a message is read, and makes them
// all at once, so that the caller waits for the devices once. Not thread-safe.
//
// A transport finds a destination by its size, so a tensor may lie in that of
// another. Such a one goes by way of the host: whatever lies on devices is read
// from there before anything is written.
class DeviceCopies {
 public:
  // `destinations` outlives this.
  DeviceCopies(const DestinationSet* destinations, DeviceTensors device_tensors)
      : destinations_(destinations), device_tensors_(device_tensors) {}

  // Puts `from`, which is not to be used before Run(), into the destination,
  // which outlives this and is of its type and shape. At least one of them lies
  // on a device. Returns RESOURCE_EXHAUSTED if there is no memory for what is
  // to go by way of the host.
  absl::Status Add(Tensor from, Destination* to);

  // Returns what becomes of a tensor on a device that has no destination: a
  // tensor on the host, to be used after Run(), or the same. Returns
  // RESOURCE_EXHAUSTED if there is no memory.
  absl::StatusOr<Tensor> WithoutDestination(Tensor from);

  // Makes the copies. On an error, of DeviceMemory, no destination that was
  // added is used, and each says why.
  absl::Status Run();

 private:
  // Copies that need the same function.
  struct Item {
    Tensor from;
    Tensor to;
  };

  absl::StatusOr<Tensor> ToHeap(Tensor from);
  absl::Status CopyAll(DeviceMemory* memory) const;

  const DestinationSet* const destinations_;
  const DeviceTensors device_tensors_;
  std::vector<Item> to_host_;
  std::vector<Item> from_host_;
  std::vector<Item> on_device_;
  std::vector<Destination*> used_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_
