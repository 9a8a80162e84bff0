// System values that both processes of a step read.

#ifndef PENSTOCK_BENCH_TENSORS_SYSTEM_H_
#define PENSTOCK_BENCH_TENSORS_SYSTEM_H_

#include <sys/resource.h>
#include <time.h>

#include <cstdint>

namespace penstock::bench {

// Returns the time in nanoseconds by a clock that all processes of the machine
// share.
inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// Returns the number of this process's minor page faults.
inline int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_SYSTEM_H_
