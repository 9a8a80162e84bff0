#include "transport/device/slots.h"

#include <algorithm>

namespace penstock {
namespace device {

namespace {

// The smallest load, in bytes. For smaller loads, the fixed cost exceeds the
// cost of copying the bytes.
constexpr size_t kLeastBytes = 256 * 1024;

}  // namespace

size_t NextLoadBytes(size_t begun, size_t left, size_t slot_bytes) {
  if (left < 2 * kLeastBytes) return std::min(SlotBytes(left), slot_bytes);
  size_t bytes = kLeastBytes;
  for (; begun > 0 && bytes < slot_bytes; --begun) bytes *= 2;
  return std::min({bytes, SlotBytes(left / 2), slot_bytes});
}

std::vector<SlotLoad> DivideAmongSlots(absl::Span<const HostCopy> copies,
                                       size_t slot_bytes) {
  std::vector<SlotLoad> loads;
  size_t left = 0;
  for (const HostCopy& copy : copies) left += SlotBytes(copy.bytes);
  size_t room = 0;  // in the last load
  for (HostCopy rest : copies) {
    while (rest.bytes > 0) {
      if (room == 0) {
        room = NextLoadBytes(loads.size(), left, slot_bytes);
        loads.emplace_back();
      }
      const size_t taken = std::min(rest.bytes, room);
      loads.back().push_back({rest.device, rest.host, taken});
      room -= SlotBytes(taken);
      left -= SlotBytes(taken);
      rest = {rest.device + taken, rest.host + taken, rest.bytes - taken};
    }
  }
  return loads;
}

}  // namespace device
}  // namespace penstock
