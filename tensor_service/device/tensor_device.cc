// Copies tensors between the host and devices.

#include <vector>

#include "absl/strings/str_cat.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {
namespace {

std::string OperationOn(const Tensor& tensor, const Device& to) {
  return absl::StrCat("copy tensor ", tensor.ToString(), " from ",
                      tensor.device().ToString(), " to ", to.ToString());
}

// Prepends the operation to the message.
absl::Status In(const std::string& operation, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(operation, ": ", status.message()));
}

// Allocates a host tensor for the elements of `tensor`, and appends the copy to
// `copies`.
absl::StatusOr<Tensor> AddCopy(const Tensor& tensor, Allocator* allocator,
                               std::vector<CopyToHost>* copies) {
  absl::StatusOr<Tensor> copy =
      Tensor::Allocate(tensor.dtype(), tensor.shape(), allocator);
  if (copy.ok() && tensor.byte_size() > 0) {
    copies->push_back({tensor.buffer().get(), 0, tensor.byte_size(),
                       copy->buffer()->mutable_data()});
  }
  return copy;
}

absl::Status CopyInto(const Tensor& from, const std::shared_ptr<Buffer>& to,
                      DeviceMemory* memory) {
  const size_t size = from.byte_size();
  if (size == 0) return absl::OkStatus();
  if (from.device().is_host()) {
    const CopyFromHost copy = {from.bytes().data(), size, to.get(), 0};
    return memory->Copy(absl::MakeConstSpan(&copy, 1));
  }
  const CopyOnDevice copy = {from.buffer().get(), to.get(), size};
  return memory->Copy(absl::MakeConstSpan(&copy, 1));
}

}  // namespace

absl::StatusOr<Tensor> Tensor::ToHost(Allocator* allocator) const {
  if (device().is_host()) return *this;
  const std::string operation = OperationOn(*this, Device());
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  if (!memory.ok()) return memory.status();
  std::vector<CopyToHost> copies;
  absl::StatusOr<Tensor> copy = AddCopy(*this, allocator, &copies);
  if (!copy.ok() || copies.empty()) return copy;
  absl::Status status = In(operation, (*memory)->Copy(copies));
  if (!status.ok()) return status;
  return copy;
}

absl::StatusOr<Tensor> Tensor::ToDevice(const Device& device) const {
  return device == this->device() ? *this : CopyTo(device);
}

absl::StatusOr<Tensor> Tensor::CopyTo(const Device& device,
                                      Allocator* allocator) const {
  if (device.is_host()) {
    return this->device().is_host() ? Copy(allocator) : ToHost(allocator);
  }
  const std::string operation = OperationOn(*this, device);
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<std::shared_ptr<Buffer>> buffer =
      (*memory)->Allocate(device, byte_size());
  if (!buffer.ok()) return In(operation, buffer.status());
  absl::Status status = In(operation, CopyInto(*this, *buffer, *memory));
  if (!status.ok()) return status;
  return FromBuffer(dtype_, shape_, *std::move(buffer));
}

absl::StatusOr<Bundle> Bundle::ToHost(Allocator* allocator) const {
  Bundle here = *this;
  std::vector<CopyToHost> copies;
  for (NamedTensor& named : here.tensors) {
    if (named.tensor.device().is_host()) continue;
    absl::StatusOr<Tensor> copy = AddCopy(named.tensor, allocator, &copies);
    if (!copy.ok()) return copy.status();
    named.tensor = *std::move(copy);
  }
  if (copies.empty()) return here;
  const std::string operation =
      absl::StrCat("copy ", copies.size(), " tensors from devices to the host");
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  if (!memory.ok()) return memory.status();
  absl::Status status = In(operation, (*memory)->Copy(copies));
  if (!status.ok()) return status;
  return here;
}

}  // namespace penstock::tensor
