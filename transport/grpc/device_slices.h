// Slices that lie in the memory of devices, in gRPC's messages.

#ifndef PENSTOCK_TRANSPORT_GRPC_DEVICE_SLICES_H_
#define PENSTOCK_TRANSPORT_GRPC_DEVICE_SLICES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Returns true if the CPU cannot read all of `message`. Costs one load while no
// message has memory of devices.
bool HasDeviceSlices(const grpc_core::SliceBuffer& message);

// Returns those that it cannot.
std::vector<absl::Span<const uint8_t>> DeviceSlicesOf(
    const grpc_core::SliceBuffer& message);

// Returns nothing while bytes of slices that lie on devices may not be read
// yet; then OK, or the first error of a device.
absl::optional<absl::Status> PollDeviceSlices(
    const grpc_core::SliceBuffer& message);

// Replaces slices that lie on devices, and are ready to be read, by copies on
// the host: all of them, or those below `keep_from` bytes. After an error, of a
// device or for lack of memory, the message is as it was.
absl::Status CopyDeviceSlices(size_t keep_from,
                              grpc_core::SliceBuffer* message);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_DEVICE_SLICES_H_
