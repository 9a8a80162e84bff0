#include "transport/device/devices.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/device/status.h"
#include "transport/device/survey.h"

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

absl::StatusOr<Device*> Devices::Any() {
  {
    base::MutexLock lock(&mu_);
    for (const auto& open : open_) {
      Device* const device = open.second->device.get();
      if (!device->is_lost()) return device;
    }
  }
  absl::StatusOr<OpenDevice*> first = At(0);
  if (!first.ok()) return first.status();
  return (*first)->device.get();
}

absl::StatusOr<int> Devices::OrdinalOf(abi::Address address) {
  absl::StatusOr<Device*> any = Any();
  if (!any.ok()) return any.status();
  Device* const device = *any;
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  unsigned type = 0;
  int ordinal = 0;
  const auto ask = [&](void* value, int attribute) {
    return device->api()->PointerGetAttribute(value, attribute, address);
  };
  abi::Result asked = ask(&type, abi::kPointerMemoryType);
  // True if CUDA does not know the address, which is then ordinary memory of
  // the host.
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

absl::StatusOr<int> Devices::OrdinalOf(const abi::Uuid& uuid) {
  int count = 0;
  abi::Result asked = api_->DeviceGetCount(&count);
  for (int i = 0; i < count && asked == abi::kSuccess; ++i) {
    abi::DeviceId id = 0;
    abi::Uuid its = {};
    asked = api_->DeviceGet(&id, i);
    if (asked == abi::kSuccess) asked = api_->DeviceGetUuid(&its, id);
    if (asked != abi::kSuccess) break;
    if (std::memcmp(its.bytes, uuid.bytes, sizeof uuid.bytes) == 0) return i;
  }
  if (asked != abi::kSuccess) return CallFailed(api_, asked, "find a device");
  return absl::NotFoundError(
      absl::StrCat("this process does not see ", UuidText(uuid),
                   ": see nvidia-smi -L, CUDA_VISIBLE_DEVICES"));
}

}  // namespace device
}  // namespace penstock
