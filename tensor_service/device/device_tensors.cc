#include "tensor_service/device_tensors.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {
namespace {

// Copies of a bundle's tensors. The bundle must outlive this object.
class OwnCopies {
 public:
  explicit OwnCopies(DeviceMemory* memory) : memory_(memory) {}

  // Returns the future copy of a tensor on a device. Run() fills its elements.
  absl::StatusOr<Tensor> Add(const Tensor& tensor) {
    const size_t size = tensor.byte_size();
    if (size == 0) {
      return Tensor::FromBuffer(tensor.dtype(), tensor.shape(), nullptr);
    }
    absl::StatusOr<std::shared_ptr<Buffer>> there =
        memory_->Allocate(tensor.device(), size);
    if (absl::IsResourceExhausted(there.status())) return AddToHost(tensor);
    if (!there.ok()) return there.status();
    on_device_.push_back({tensor.buffer().get(), there->get(), size});
    // Returns a read-only tensor, because device memory that is shared has no
    // other protection.
    return Tensor::FromBuffer(tensor.dtype(), tensor.shape(),
                              Buffer::PartOf(*std::move(there), 0, size));
  }

  absl::Status Run() {
    absl::Status status;
    if (!on_device_.empty()) status = memory_->Copy(on_device_);
    if (status.ok() && !to_host_.empty()) status = memory_->Copy(to_host_);
    return status;
  }

 private:
  absl::StatusOr<Tensor> AddToHost(const Tensor& tensor) {
    absl::StatusOr<Tensor> here =
        Tensor::Allocate(tensor.dtype(), tensor.shape(), HeapAllocator());
    if (here.ok()) {
      to_host_.push_back({tensor.buffer().get(), 0, tensor.byte_size(),
                          here->buffer()->mutable_data()});
    }
    return here;
  }

  DeviceMemory* const memory_;
  std::vector<CopyOnDevice> on_device_;
  std::vector<CopyToHost> to_host_;
};

absl::Status In(const std::string& operation, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(operation, ": ", status.message()));
}

}  // namespace

absl::StatusOr<Bundle> OwnOnDevices(const Bundle& bundle) {
  Bundle own = bundle;
  std::vector<NamedTensor*> others;
  for (NamedTensor& named : own.tensors) {
    if (!named.tensor.device().is_host()) others.push_back(&named);
  }
  if (others.empty()) return own;
  const std::string operation = absl::StrCat(
      "keep ", others.size(), " tensors that lie on devices, the first on ",
      others[0]->tensor.device().ToString());
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  if (!memory.ok()) return memory.status();
  OwnCopies copies(*memory);
  for (NamedTensor* named : others) {
    absl::StatusOr<Tensor> copy = copies.Add(named->tensor);
    if (!copy.ok()) return In(operation, copy.status());
    named->tensor = *std::move(copy);
  }
  absl::Status status = In(operation, copies.Run());
  if (!status.ok()) return status;
  return own;
}

}  // namespace penstock::tensor
