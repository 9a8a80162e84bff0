#include "tensor_service/codec/device_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::tensor {

absl::StatusOr<Tensor> DeviceCopies::ToHeap(Tensor from) {
  absl::StatusOr<Tensor> here =
      Tensor::Allocate(from.dtype(), from.shape(), HeapAllocator());
  if (here.ok()) to_host_.push_back({std::move(from), *here});
  return here;
}

absl::Status DeviceCopies::Add(Tensor from, Destination* to) {
  if (from.byte_size() == 0) return absl::OkStatus();
  used_.push_back(to);
  const Tensor& into = to->into;
  const bool to_device = !into.device().is_host();
  if (to_device && !from.device().is_host() &&
      destinations_->IsOverlapped(from)) {
    absl::StatusOr<Tensor> here = ToHeap(std::move(from));
    if (!here.ok()) return here.status();
    from = *std::move(here);
  }
  std::vector<Item>& items = !to_device                ? to_host_
                             : from.device().is_host() ? from_host_
                                                       : on_device_;
  items.push_back({std::move(from), into});
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceCopies::WithoutDestination(Tensor from) {
  // Keeps only aligned tensors on the device: a kernel that uses an unaligned
  // address makes the device unusable.
  if (device_tensors_ == DeviceTensors::kKeep && from.IsAligned() &&
      !destinations_->IsOverlapped(from)) {
    return from;
  }
  return ToHeap(std::move(from));
}

absl::Status DeviceCopies::CopyAll(DeviceMemory* memory) const {
  std::vector<CopyToHost> to_host;
  for (const Item& item : to_host_) {
    to_host.push_back({item.from.buffer().get(), 0, item.from.byte_size(),
                       item.to.buffer()->mutable_data()});
  }
  std::vector<CopyFromHost> from_host;
  for (const Item& item : from_host_) {
    from_host.push_back({item.from.bytes().data(), item.from.byte_size(),
                         item.to.buffer().get(), 0});
  }
  std::vector<CopyOnDevice> on_device;
  for (const Item& item : on_device_) {
    on_device.push_back({item.from.buffer().get(), item.to.buffer().get(),
                         item.from.byte_size()});
  }
  absl::Status status;
  // Copies to the host first, because that frees destinations that are written
  // next.
  if (!to_host.empty()) status = memory->Copy(to_host);
  if (status.ok() && !from_host.empty()) status = memory->Copy(from_host);
  if (status.ok() && !on_device.empty()) status = memory->Copy(on_device);
  return status;
}

absl::Status DeviceCopies::Run() {
  const size_t copies = to_host_.size() + from_host_.size() + on_device_.size();
  if (copies == 0) return absl::OkStatus();
  const std::string operation =
      absl::StrCat("copy ", copies, " received tensors from or to devices");
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  absl::Status status = memory.ok() ? CopyAll(*memory) : memory.status();
  if (status.ok()) return status;
  if (memory.ok()) {
    status = absl::Status(status.code(),
                          absl::StrCat(operation, ": ", status.message()));
  }
  for (Destination* destination : used_) destination->used = status;
  return status;
}

}  // namespace penstock::tensor
