// Pages of 2 MiB for the memory of payloads. Large messages then cause fewer
// page faults and TLB misses.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_

#include <cstdint>

namespace penstock {
namespace fabric {
namespace shm {

// The size of a huge page, in bytes: the next size above ordinary pages on x86,
// and on arm64 with pages of 4 KiB.
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// The kind of pages to request from the kernel.
enum class HugePages {
  // Advise the kernel (MADV_HUGEPAGE). The kernel follows the advice unless
  // /sys/kernel/mm/transparent_hugepage/shmem_enabled is "never".
  kTransparent,
  // Use pages that an administrator has reserved (hugetlbfs, vm.nr_hugepages).
  // Other programs may use these pages, too. Falls back to kTransparent if none
  // are left.
  kReserved,
  // Use ordinary pages.
  kOff,
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_HUGE_PAGES_H_
