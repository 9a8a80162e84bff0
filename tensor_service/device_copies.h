// What a message brings for destinations on devices.

#ifndef PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_
#define PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_

#include <vector>

#include "absl/status/status.h"
#include "tensor_service/destination.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Gathers copies to destinations while a message is read, and makes them all at
// once, so that the caller waits for the devices once. Not thread-safe.
class DeviceCopies {
 public:
  // `from`, on the host, has the bytes of the destination, which outlives this.
  void Add(Tensor from, Destination* to);

  // Makes the copies. On an error, of DeviceMemory, no destination that was
  // added is used, and each says why.
  absl::Status Run();

 private:
  struct Item {
    Tensor from;
    Destination* to;
  };
  std::vector<Item> items_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DEVICE_COPIES_H_
