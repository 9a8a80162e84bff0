// Pages of 2 MiB for payload memory: fewer faults and misses of the TLB where a
// large message is written and read.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_

#include <cstdint>

namespace penstock {
namespace fabric {
namespace shm {

// Those of x86 above the ordinary ones, and of arm64 with pages of 4 KiB.
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// What is asked of the kernel.
enum class HugePages {
  // Advice (MADV_HUGEPAGE), which it follows where
  // /sys/kernel/mm/transparent_hugepage/shmem_enabled is not "never".
  kTransparent,
  // Those that an administrator has reserved (hugetlbfs, vm.nr_hugepages),
  // which others may count on too; where there are none, transparent.
  kReserved,
  kOff,
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_
