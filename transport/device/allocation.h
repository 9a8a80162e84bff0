// What the driver knows of an allocation of device memory.

#ifndef PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_H_
#define PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/device/device.h"

namespace penstock {
namespace device {

struct Allocation {
  abi::Address address = 0;
  size_t size = 0;  // in bytes
};

// Returns the allocation of `device` that all of `range` lies in. Returns
// INVALID_ARGUMENT if there is none. Thread-safe.
absl::StatusOr<Allocation> AllocationOf(Device* device,
                                        absl::Span<const uint8_t> range);

// Returns the number of the allocation at `address`, which no other one of this
// process has ever had. Thread-safe.
absl::StatusOr<uint64_t> IdOf(Device* device, abi::Address address);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_H_
