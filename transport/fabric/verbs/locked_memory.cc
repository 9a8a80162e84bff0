#include "transport/fabric/verbs/locked_memory.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The locked memory of one connection, in bytes: its buffers, and one or two
// pages for each queue.
constexpr uint64_t kConnectionBytes = 600 * 1024;
// Caches may use this fraction (1 / n) of the limit. The rest is for buffers,
// and for copies of messages, whose size is not known in advance.
constexpr uint64_t kCachePart = 4;

// Returns true if the process has CAP_IPC_LOCK, by the system call that libcap
// uses.
bool HasIpcLock() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
          CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

}  // namespace

uint64_t LockedMemoryLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY || HasIpcLock()) {
    return kUnlimited;
  }
  return limit.rlim_cur;
}

absl::Status CheckLockedMemory(uint64_t limit) {
  if (limit >= kConnectionBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "this process may lock ", limit >> 10, " KiB of memory, and an RDMA ",
      "connection needs ", kConnectionBytes >> 10, "; ", kLockedMemoryRemedy));
}

uint64_t CacheBudget(uint64_t wanted, uint64_t limit) {
  return limit == kUnlimited ? wanted : std::min(wanted, limit / kCachePart);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
