// What a process uses of the machine, as the kernel counts it.

#ifndef PENSTOCK_BENCH_RPC_USAGE_H_
#define PENSTOCK_BENCH_RPC_USAGE_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

struct Usage {
  double cpu_s = 0;  // of all its threads so far, in user space and kernel
  // The proportional set size of memory that is not a file's: a page that
  // several processes map counts for each in part, so that sums over processes
  // count it once.
  double memory_kib = 0;
  double page_faults = 0;  // so far, of those that needed no disk
};

inline Usage operator+(const Usage& a, const Usage& b) {
  return {a.cpu_s + b.cpu_s, a.memory_kib + b.memory_kib,
          a.page_faults + b.page_faults};
}

// Returns the usage of a living process of this user, which may take
// milliseconds. The error names what could not be read.
absl::StatusOr<Usage> UsageOf(pid_t pid);

// Returns cpu_s of it alone, which takes a microsecond.
absl::StatusOr<double> CpuSecondsOf(pid_t pid);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_USAGE_H_
