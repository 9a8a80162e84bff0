// Copies tensors from the memory of devices to the host.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_ON_HOST_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_ON_HOST_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/tensor.h"

namespace penstock {
namespace tensorflow {

// Calls `done` with a tensor in host memory. The result is the tensor itself if
// it is already in host memory, or on a device without its own memory.
// Otherwise it is a copy, made by TensorFlow's own copy functions.
void OnHost(const ::tensorflow::Tensor& tensor, ::tensorflow::Device* device,
            ::tensorflow::DeviceContext* context, bool is_on_host,
            const std::string& name,
            std::function<void(absl::StatusOr<::tensorflow::Tensor>)> done);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_ON_HOST_H_
