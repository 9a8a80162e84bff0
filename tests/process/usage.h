// What another process uses, as /proc has it.

#ifndef PENSTOCK_TESTS_PROCESS_USAGE_H_
#define PENSTOCK_TESTS_PROCESS_USAGE_H_

#include <sys/types.h>

#include <cstdint>

namespace penstock::process {

// Zero where the process has gone.
uint64_t ResidentBytes(pid_t pid);
// The most since ForgetPeak(), or since the start where the kernel does not let
// it be forgotten.
uint64_t PeakBytes(pid_t pid);
void ForgetPeak(pid_t pid);
double CpuSeconds(pid_t pid);
int Descriptors(pid_t pid);

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_USAGE_H_
