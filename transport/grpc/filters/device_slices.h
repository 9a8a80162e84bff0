// Slices of gRPC messages that are in device memory.

#ifndef PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_SLICES_H_
#define PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_SLICES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns true if a slice of `message` is in device memory. Costs one load
// while no message has device memory.
bool HasDeviceSlices(const grpc_core::SliceBuffer& message);

// Returns the slices of `message` that are in device memory.
std::vector<absl::Span<const uint8_t>> DeviceSlicesOf(
    const grpc_core::SliceBuffer& message);

// Returns nothing while device slices of `message` may not be read yet.
// Afterwards returns OK, or the first error of a device.
absl::optional<absl::Status> PollDeviceSlices(
    const grpc_core::SliceBuffer& message);

// Replaces device slices of fewer than `keep_from` bytes by host copies. The
// slices must be ready to be read. Fails after an error of a device, or if
// memory runs out; the message is then unchanged.
absl::Status CopyDeviceSlices(size_t keep_from,
                              grpc_core::SliceBuffer* message);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_FILTERS_DEVICE_SLICES_H_
