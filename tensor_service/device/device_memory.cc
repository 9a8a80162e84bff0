#include "tensor_service/device_memory.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace penstock::tensor {
namespace {

std::atomic<DeviceMemory*> device_memory{nullptr};

}  // namespace

void SetDeviceMemory(DeviceMemory* memory) {
  device_memory.store(memory, std::memory_order_release);
}

DeviceMemory* GetDeviceMemory() {
  return device_memory.load(std::memory_order_acquire);
}

absl::StatusOr<DeviceMemory*> NeedDeviceMemory(absl::string_view operation) {
  if (DeviceMemory* const memory = GetDeviceMemory()) return memory;
  return absl::FailedPreconditionError(absl::StrCat(
      operation,
      ": this process has no DeviceMemory, which copies to and from devices; "
      "call penstock::tensor::SetDeviceMemory() first, with the object of "
      "tensor_service/cuda/cuda_memory.h"));
}

}  // namespace penstock::tensor
