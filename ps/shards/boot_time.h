// A clock for leases.

#ifndef PENSTOCK_PS_SHARDS_BOOT_TIME_H_
#define PENSTOCK_PS_SHARDS_BOOT_TIME_H_

#include <ctime>

#include "absl/time/time.h"

namespace penstock::ps {

// Returns the time since the machine started, including suspends: a lease also
// expires during a suspend. Monotonic.
inline absl::Time BootNow() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_BOOT_TIME_H_
