#include "transport/base/address_space.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace base {
namespace {

// Returns RLIMIT_AS in bytes, or RLIM_INFINITY.
rlim_t Limit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// Returns the address space in use, in bytes, or 0 if /proc is missing.
uint64_t Used() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string AddressSpaceLimitText() {
  const rlim_t limit = Limit();
  if (limit == RLIM_INFINITY) return "";
  return absl::StrCat("the address space of this process is limited to ",
                      limit >> 10, " KiB; raise ulimit -v (RLIMIT_AS)");
}

bool ExceedsAddressSpace(uint64_t bytes) {
  const rlim_t limit = Limit();
  if (limit == RLIM_INFINITY) return false;
  const uint64_t used = Used();
  return used > limit || bytes > limit - used;
}

absl::Status NoAddressSpace(absl::string_view operation, uint64_t bytes) {
  const std::string why =
      ExceedsAddressSpace(bytes)
          ? AddressSpaceLimitText()
          : "no address space or too many mappings; raise vm.max_map_count, "
            "or allow overcommit (vm.overcommit_memory)";
  return absl::ResourceExhaustedError(absl::StrCat(operation, ": ", why));
}

}  // namespace base
}  // namespace penstock
