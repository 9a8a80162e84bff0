// The resource usage of a process, as counted by the kernel.

#ifndef PENSTOCK_BENCH_RPC_SETUP_USAGE_H_
#define PENSTOCK_BENCH_RPC_SETUP_USAGE_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

struct Usage {
  double cpu_s = 0;  // of all threads so far, in user space and kernel
  // The proportional set size, without files. A page that several processes map
  // counts partially for each, so a sum over processes counts the page once.
  double memory_kib = 0;
  double page_faults = 0;  // minor page faults until now
};

inline Usage operator+(const Usage& a, const Usage& b) {
  return {a.cpu_s + b.cpu_s, a.memory_kib + b.memory_kib,
          a.page_faults + b.page_faults};
}

// Returns the usage of a running process of this user. May take milliseconds.
// The error names the unreadable file.
absl::StatusOr<Usage> UsageOf(pid_t pid);

// Returns the CPU seconds of a process. Takes a microsecond.
absl::StatusOr<double> CpuSecondsOf(pid_t pid);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_USAGE_H_
