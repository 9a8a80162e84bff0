// The kernel's settings about huge pages, for tests that change them.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_

#include <cstdint>
#include <string>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// While it lives, no other test changes a setting, or takes reserved pages of
// which one counts how many there are. Waits for the others.
class KernelPagesLock {
 public:
  KernelPagesLock();

 private:
  const base::UniqueFd fd_;
};

// A file of the kernel's has other contents while this lives.
class KernelSetting {
 public:
  KernelSetting(const std::string& path, const std::string& value);
  ~KernelSetting();
  KernelSetting(const KernelSetting&) = delete;
  KernelSetting& operator=(const KernelSetting&) = delete;

  // Empty, or why it has not: no right to write it, as mostly.
  const std::string& why_not() const { return why_not_; }

 private:
  const std::string path_;
  const std::string before_;
  std::string why_not_;
};

// "never" of "always [never]"; a plain value as it is.
std::string ChosenOf(const std::string& text);
std::string ReadSetting(const std::string& path);
// Huge pages of the default size that nobody has, may be had besides, exist.
struct ReservedPages {
  uint64_t free = 0;
  uint64_t overcommit = 0;
  uint64_t total = 0;
};
ReservedPages CountReservedPages();

// Bytes of this process's mapping at `data` that are mapped as huge pages,
// transparent or reserved ones.
struct HugelyMapped {
  uint64_t transparent = 0;
  uint64_t reserved = 0;
};
HugelyMapped CountHugelyMapped(const void* data);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_KERNEL_PAGES_H_
