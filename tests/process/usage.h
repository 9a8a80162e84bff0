// Reads another process's resource usage from /proc.

#ifndef PENSTOCK_TESTS_PROCESS_USAGE_H_
#define PENSTOCK_TESTS_PROCESS_USAGE_H_

#include <sys/types.h>

#include <cstdint>

namespace penstock::process {

// Returns the process's resident bytes, or zero if the process is gone.
uint64_t ResidentBytes(pid_t pid);
// Returns the maximum of ResidentBytes() since ForgetPeak(), or since the start
// if the kernel does not allow a reset.
uint64_t PeakBytes(pid_t pid);
void ForgetPeak(pid_t pid);
double CpuSeconds(pid_t pid);
int Descriptors(pid_t pid);

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_USAGE_H_
