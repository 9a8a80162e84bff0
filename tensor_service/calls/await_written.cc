#include "tensor_service/calls/await_written.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

bool IsWritten(const Tensor& tensor, DeviceMemory* memory) {
  if (tensor.device().is_host()) return true;
  const std::shared_ptr<const DeviceEvent> ready = tensor.buffer()->ready();
  if (ready == nullptr) return true;
  const absl::StatusOr<bool> completed = memory->HasCompleted(*ready);
  return !completed.ok() || *completed;
}

const NamedTensor* FindUnwritten(const Bundle& bundle, DeviceMemory* memory) {
  for (const NamedTensor& named : bundle.tensors) {
    if (!IsWritten(named.tensor, memory)) return &named;
  }
  return nullptr;
}

}  // namespace

absl::Status AwaitWritten(CallQueue* queue, const Bundle& bundle,
                          absl::Duration* timeout) {
  DeviceMemory* const memory = GetDeviceMemory();
  // Returns OK without device memory. The copy to the host then reports the
  // error.
  if (memory == nullptr) return absl::OkStatus();
  const NamedTensor* unwritten = nullptr;
  absl::Status status = queue->Await(
      [&]() -> absl::StatusOr<bool> {
        unwritten = FindUnwritten(bundle, memory);
        return unwritten == nullptr;
      },
      timeout);
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("wait until work on ", unwritten->tensor.device().ToString(),
                   " has written ",
                   unwritten->name.empty() ? "the tensor" : "tensor ",
                   Quoted(unwritten->name), ": ", status.message()));
}

}  // namespace penstock::tensor
