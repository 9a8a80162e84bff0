// Changes the kernel's settings of huge pages for tests, and counts such pages.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_

#include <cstdint>
#include <string>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A lock among tests. While it lives, no other test changes a setting, or takes
// reserved pages while one counts them. Waits for the other tests.
class KernelPagesLock {
 public:
  KernelPagesLock();

 private:
  const base::UniqueFd fd_;
};

// Gives a file of the kernel's another value while it lives.
class KernelSetting {
 public:
  KernelSetting(const std::string& path, const std::string& value);
  ~KernelSetting();
  KernelSetting(const KernelSetting&) = delete;
  KernelSetting& operator=(const KernelSetting&) = delete;

  // Returns why the value was not set, mostly for lack of rights; an empty
  // string if it was.
  const std::string& why_not() const { return why_not_; }

 private:
  const std::string path_;
  const std::string before_;
  std::string why_not_;
};

// Returns "never" for "always [never]", and a plain value as it is.
std::string ChosenOf(const std::string& text);
std::string ReadSetting(const std::string& path);
// Huge pages of the default size: that are free, that may be added beyond the
// reserved ones, and that exist.
struct ReservedPages {
  uint64_t free = 0;
  uint64_t overcommit = 0;
  uint64_t total = 0;
};
ReservedPages CountReservedPages();

// How many bytes of this process's mapping at `data` are mapped as huge pages.
struct HugelyMapped {
  uint64_t transparent = 0;
  uint64_t reserved = 0;
};
HugelyMapped CountHugelyMapped(const void* data);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
