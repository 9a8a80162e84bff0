#include "transport/device/slots.h"

#include <algorithm>

namespace penstock {
namespace device {

std::vector<SlotLoad> DivideAmongSlots(absl::Span<const HostCopy> copies,
                                       size_t slot_bytes) {
  std::vector<SlotLoad> loads;
  size_t room = 0;  // in the last load's slot
  for (HostCopy rest : copies) {
    while (rest.bytes > 0) {
      if (room == 0) {
        loads.emplace_back();
        room = slot_bytes;
      }
      const size_t taken = std::min(rest.bytes, room);
      loads.back().push_back({rest.device, rest.host, taken});
      room -= SlotBytes(taken);
      rest = {rest.device + taken, rest.host + taken, rest.bytes - taken};
    }
  }
  return loads;
}

}  // namespace device
}  // namespace penstock
