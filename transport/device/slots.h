// Divides copies between a device and the host among the slots of a pipeline.

#ifndef PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_
#define PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "transport/device/abi.h"

namespace penstock {
namespace device {

// One copy between a device and the host, in either direction.
struct HostCopy {
  abi::Address device = 0;
  char* host = nullptr;  // only read, if the host is the source
  size_t bytes = 0;
};

// The copies that fill one slot of the pipeline, concatenated. Each element is
// a whole copy or a piece of a copy.
using SlotLoad = std::vector<HostCopy>;

// Returns the size of the next load, after `begun` earlier loads and with
// `left` bytes remaining. The first loads grow and the last loads shrink,
// because the other stages are idle while the first and the last load are
// copied.
size_t NextLoadBytes(size_t begun, size_t left, size_t slot_bytes);

// Divides `copies` into loads, in order. Each load has NextLoadBytes() bytes or
// a little less. Each part begins at a multiple of kSlotAlignment in its slot.
// A copy that does not fit into the rest of a load is cut. Skips empty copies.
std::vector<SlotLoad> DivideAmongSlots(absl::Span<const HostCopy> copies,
                                       size_t slot_bytes);

// The alignment that copy engines of devices prefer, in bytes. Each slot's size
// is a multiple of this number.
constexpr size_t kSlotAlignment = 64;
// Returns the room in a slot for a part of `bytes`.
constexpr size_t SlotBytes(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_
