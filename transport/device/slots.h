// Divides copies between a device and the host among the slots of a pipeline.

#ifndef PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_
#define PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "transport/device/abi.h"

namespace penstock {
namespace device {

// One copy between a device and the host, whichever way it goes.
struct HostCopy {
  abi::Address device = 0;
  char* host = nullptr;  // only read, if it is copied from there
  size_t bytes = 0;
};

// What goes through a slot at once: parts of copies, one behind the other.
using SlotLoad = std::vector<HostCopy>;

// Returns how many bytes the next load has, when `begun` loads went before it
// and `left` bytes are still to go. The first loads grow and the last ones
// shrink: a stage waits for the first load, and the last load is waited for,
// and the larger these are the longer all other stages are idle.
size_t NextLoadBytes(size_t begun, size_t left, size_t slot_bytes);

// Returns loads that together are `copies`, in order, each of NextLoadBytes()
// or a little less. Each part begins at a multiple of kSlotAlignment in its
// slot. A copy that does not fit into what is left of a load is cut. Leaves out
// empty copies.
std::vector<SlotLoad> DivideAmongSlots(absl::Span<const HostCopy> copies,
                                       size_t slot_bytes);

// What a device's copy engine likes, in bytes. Of which a slot is a multiple.
constexpr size_t kSlotAlignment = 64;
// Returns how much of a slot a part of that size takes.
constexpr size_t SlotBytes(size_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_SLOTS_H_
