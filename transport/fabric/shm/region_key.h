// The key of a region's part: the number of a container, and the number of the
// loan. The container is a segment of the arena, or an allocation of device
// memory. Segments and allocations have separate ranges of numbers.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_REGION_KEY_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_REGION_KEY_H_

#include <cstdint>

namespace penstock {
namespace fabric {
namespace shm {

// A bit that is set in the number of an allocation, and clear in the number of
// a segment.
constexpr uint32_t kDeviceBit = uint32_t{1} << 31;

inline bool IsDeviceId(uint32_t segment_id) {
  return (segment_id & kDeviceBit) != 0;
}

inline uint64_t RegionKey(uint32_t segment_id, uint32_t loan) {
  return (uint64_t{segment_id} << 32) | loan;
}
inline uint32_t SegmentOfKey(uint64_t key) {
  return static_cast<uint32_t>(key >> 32);
}
inline uint32_t LoanOfKey(uint64_t key) { return static_cast<uint32_t>(key); }

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_REGION_KEY_H_
