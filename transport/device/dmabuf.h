// How network devices reach the memory of a GPU.

#ifndef PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_
#define PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/device/device.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace device {

// Returns a dma-buf of the whole pages of the host's size that `range`, memory
// of `device`, lies in. Returns FAILED_PRECONDITION, with the reason, where
// there is none. Thread-safe.
absl::StatusOr<memory::Dmabuf> ExportPages(Device* device,
                                           absl::Span<const uint8_t> range);

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_DMABUF_H_
