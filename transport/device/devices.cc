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

absl::StatusOr<int> Devices::OrdinalOf(abi::Address address) {
  absl::StatusOr<OpenDevice*> first = At(0);
  if (!first.ok()) return first.status();
  Device* const device = (*first)->device.get();
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  unsigned type = 0;
  int ordinal = 0;
  const auto ask = [&](void* value, int attribute) {
    return device->api()->PointerGetAttribute(value, attribute, address);
  };
  abi::Result asked = ask(&type, abi::kPointerMemoryType);
  // Memory of the host that CUDA does not know.
  const bool is_unknown = asked == abi::kInvalidValue;
  if (asked == abi::kSuccess) asked = ask(&ordinal, abi::kPointerDeviceOrdinal);
  if (asked != abi::kSuccess && !is_unknown) {
    return device->Check(asked, "ask whose memory it is");
  }
  if (is_unknown || type != abi::kMemoryTypeDevice) {
    return absl::InvalidArgumentError("no device's memory is at this address");
  }
  return ordinal;
}

}  // namespace device
}  // namespace penstock
