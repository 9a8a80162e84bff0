// Looks up allocations of device memory in the driver.

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

// Returns the allocation of `device` that contains all of `range`. Returns
// INVALID_ARGUMENT if there is none. Thread-safe.
absl::StatusOr<Allocation> AllocationOf(Device* device,
                                        absl::Span<const uint8_t> range);

// Returns the number of the allocation at `address`. The number is never reused
// in this process. Thread-safe.
absl::StatusOr<uint64_t> IdOf(Device* device, abi::Address address);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_H_
