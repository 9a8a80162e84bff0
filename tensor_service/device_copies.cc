#include "tensor_service/device_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {

void DeviceCopies::Add(Tensor from, Destination* to) {
  if (from.byte_size() > 0) items_.push_back({std::move(from), to});
}

absl::Status DeviceCopies::Run() {
  if (items_.empty()) return absl::OkStatus();
  const std::string operation = absl::StrCat(
      "copy ", items_.size(), " received tensors to their destinations, of ",
      items_[0].to->into.device().ToString());
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory(operation);
  absl::Status status = memory.status();
  if (status.ok()) {
    std::vector<CopyFromHost> copies;
    copies.reserve(items_.size());
    for (const Item& item : items_) {
      copies.push_back({item.from.bytes().data(), item.from.byte_size(),
                        item.to->into.buffer().get(), 0});
    }
    status = (*memory)->Copy(copies);
    if (status.ok()) return status;
    status = absl::Status(status.code(),
                          absl::StrCat(operation, ": ", status.message()));
  }
  for (const Item& item : items_) item.to->used = status;
  return status;
}

}  // namespace penstock::tensor
