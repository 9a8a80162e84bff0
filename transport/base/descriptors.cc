#include "transport/base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace base {

// Probes each number, from the highest down, with a system call. Reading /proc
// instead could fail: /proc may be missing, and reading it needs a descriptor.
// The lowest free number does not help either, because many higher numbers may
// be in use.
Descriptors Descriptors::CountUntil(bool (*is_enough)(const Descriptors&)) {
  constexpr int64_t kMostLooks = 16 * 1024;
  constexpr int64_t kUnlimited = std::numeric_limits<int32_t>::max();
  Descriptors now;
  rlimit limit;
  now.limit = getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                      limit.rlim_cur < static_cast<rlim_t>(kUnlimited)
                  ? static_cast<int64_t>(limit.rlim_cur)
                  : kUnlimited;
  const int64_t last = std::max<int64_t>(now.limit - kMostLooks, 0);
  for (int64_t fd = now.limit - 1; fd >= last; --fd) {
    if (fcntl(static_cast<int>(fd), F_GETFD) < 0) ++now.free;
    if (is_enough(now)) return now;
  }
  if (last > 0) now.free = now.limit;
  return now;
}

Descriptors Descriptors::Now() {
  return CountUntil(
      [](const Descriptors& now) { return now.HasRoomForPath(); });
}

bool Descriptors::HaveRoomForDoorbell() {
  const auto is_enough = [](const Descriptors& now) {
    return now.free > kFreeForDoorbell;
  };
  return is_enough(CountUntil(is_enough));
}

absl::Status Descriptors::CheckForPath() const {
  return HasRoomForPath() ? absl::OkStatus() : Scarce();
}

absl::Status Descriptors::Scarce() const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "few of the ", limit,
      " descriptors of this process are free, and connections need them; raise "
      "the limit of open files (ulimit -n, LimitNOFILE=)"));
}

}  // namespace base
}  // namespace penstock
