// Changes the kernel's huge page settings for tests, and counts huge pages.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_

#include <cstdint>
#include <string>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A lock between tests, for the kernel's settings of pages. While a test holds
// the lock, no other test changes a setting or takes reserved pages. The
// constructor waits for other tests.
class KernelPagesLock {
 public:
  KernelPagesLock();

 private:
  const base::UniqueFd fd_;
};

// Sets a kernel file to another value during its lifetime.
class KernelSetting {
 public:
  KernelSetting(const std::string& path, const std::string& value);
  ~KernelSetting();
  KernelSetting(const KernelSetting&) = delete;
  KernelSetting& operator=(const KernelSetting&) = delete;

  // Returns the reason why the value was not set, usually missing rights, or an
  // empty string.
  const std::string& why_not() const { return why_not_; }

 private:
  const std::string path_;
  const std::string before_;
  std::string why_not_;
};

// Returns "never" for "always [never]", and a plain value unchanged.
std::string ChosenOf(const std::string& text);
std::string ReadSetting(const std::string& path);
// Huge pages of the default size: free pages, pages that may be added beyond
// the reserved ones, and all pages.
struct ReservedPages {
  uint64_t free = 0;
  uint64_t overcommit = 0;
  uint64_t total = 0;
};
ReservedPages CountReservedPages();

// Returns the bytes of this process's mapping at `data` that are in huge pages.
struct HugelyMapped {
  uint64_t transparent = 0;
  uint64_t reserved = 0;
};
HugelyMapped CountHugelyMapped(const void* data);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
