// Exports memory of a GPU for network devices.

#ifndef PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_
#define PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/device/device.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace device {

// Returns a dma-buf that covers `range`, rounded out to whole pages of the
// host. `range` is memory of `device`. Returns FAILED_PRECONDITION, with the
// reason, if the memory cannot be exported. Thread-safe.
absl::StatusOr<memory::Dmabuf> ExportPages(Device* device,
                                           absl::Span<const uint8_t> range);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_
