#include "transport/device/devices.h"

#include <utility>

namespace penstock {
namespace device {

Devices::Devices(Api* api, uint64_t pinned_budget)
    : api_(api), pinned_(PinnedRanges::Create(pinned_budget)) {}

absl::StatusOr<OpenDevice*> Devices::At(int ordinal) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<OpenDevice>& open = open_[ordinal];
  if (open != nullptr) return open.get();
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(api_, ordinal);
  if (!device.ok()) {
    open_.erase(ordinal);
    return device.status();
  }
  open = std::make_unique<OpenDevice>(*std::move(device), pinned_.get());
  return open.get();
}

}  // namespace device
}  // namespace penstock
