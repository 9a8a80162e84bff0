#include "transport/device/allocation.h"

#include "absl/status/status.h"

namespace penstock {
namespace device {

absl::StatusOr<Allocation> AllocationOf(Device* device,
                                        absl::Span<const uint8_t> range) {
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  const auto address = reinterpret_cast<abi::Address>(range.data());
  Allocation found;
  absl::Status asked = device->Check(
      device->api()->MemGetAddressRange(&found.address, &found.size, address),
      "ask where an allocation begins");
  if (!asked.ok()) return asked;
  const uint64_t offset = address - found.address;
  if (offset > found.size || range.size() > found.size - offset) {
    return absl::InvalidArgumentError(
        "the range is not within one allocation of a device");
  }
  return found;
}

absl::StatusOr<uint64_t> IdOf(Device* device, abi::Address address) {
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  uint64_t id = 0;
  absl::Status asked = device->Check(
      device->api()->PointerGetAttribute(&id, abi::kPointerBufferId, address),
      "ask for an allocation's number");
  if (!asked.ok()) return asked;
  return id;
}

}  // namespace device
}  // namespace penstock
