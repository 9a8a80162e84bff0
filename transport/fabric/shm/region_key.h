// The key of a region: the number of its segment, and that of its loan.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_REGION_KEY_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_REGION_KEY_H_

#include <cstdint>

namespace penstock {
namespace fabric {
namespace shm {

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
