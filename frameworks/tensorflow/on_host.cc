#include "frameworks/tensorflow/on_host.h"

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/framework/allocator.h"

namespace penstock {
namespace tensorflow {

using ::tensorflow::Allocator;
using ::tensorflow::AllocatorAttributes;
using ::tensorflow::Tensor;

void OnHost(const Tensor& tensor, ::tensorflow::Device* device,
            ::tensorflow::DeviceContext* context, bool is_on_host,
            const std::string& name,
            std::function<void(absl::StatusOr<Tensor>)> done) {
  if (is_on_host || device == nullptr ||
      device->tensorflow_accelerator_device_info() == nullptr) {
    return done(tensor);
  }
  if (context == nullptr) {
    return done(absl::InternalError(
        "a tensor in a device's memory came without that device's context"));
  }
  AllocatorAttributes attributes;  // host memory with fast copies from devices
  attributes.set_gpu_compatible(true);
  attributes.set_on_host(true);
  Allocator* const allocator = device->GetAllocator(attributes);
  auto copy =
      std::make_shared<Tensor>(allocator, tensor.dtype(), tensor.shape());
  if (!copy->IsInitialized() && tensor.TotalBytes() > 0) {
    return done(absl::ResourceExhaustedError(
        "no host memory for the copy of a device's tensor"));
  }
  ::tensorflow::CopyDeviceToHost(
      &tensor, allocator, allocator, name, device, copy.get(), context,
      [copy, done = std::move(done)](const absl::Status& status) {
        if (!status.ok()) return done(status);
        done(*copy);
      });
}

}  // namespace tensorflow
}  // namespace penstock
