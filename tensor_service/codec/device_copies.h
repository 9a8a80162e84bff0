// Copies a message's tensors from devices, and to destinations on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_DEVICE_COPIES_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_DEVICE_COPIES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Collects copies from and to devices while a message is read, and then makes
// all copies together, so that the caller waits for the devices only once. Not
// thread-safe.
//
// A transport selects a destination by size only, so a tensor may be in the
// destination of another tensor. Such a tensor is copied through the host,
// because all copies to the host precede all copies to destinations.
class DeviceCopies {
 public:
  // Makes an empty collection. `destinations` must outlive this object.
  DeviceCopies(const DestinationSet* destinations, DeviceTensors device_tensors)
      : destinations_(destinations), device_tensors_(device_tensors) {}

  // Schedules a copy of `from` to the destination `to`, which has the same type
  // and shape and must outlive this object. At least one of the two is on a
  // device. Nobody may use `from` before Run(). Returns RESOURCE_EXHAUSTED if
  // there is no memory for a copy on the host.
  absl::Status Add(Tensor from, Destination* to);

  // Returns the received form of a tensor on a device that has no destination:
  // either the same tensor, or a tensor on the host that may be used after
  // Run(). Returns RESOURCE_EXHAUSTED if there is no memory.
  absl::StatusOr<Tensor> WithoutDestination(Tensor from);

  // Makes the copies. Returns the errors of DeviceMemory. On an error, sets
  // `used` of every added destination to the error.
  absl::Status Run();

 private:
  // Tensors of one copy.
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

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_DEVICE_COPIES_H_
