// The probes of `penstock doctor`. Each is a function of a Host, with no effect
// and no state; it returns what it found, in the order in which to show it.
//
// What is fine has Level::kOk. A machine without RDMA or GPUs is fine, too: a
// missing device is a note at most. kProblem is kept for what is there, or was
// asked for, and does not work.

#ifndef PENSTOCK_CLI_DOCTOR_PROBES_H_
#define PENSTOCK_CLI_DOCTOR_PROBES_H_

#include <vector>

#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"

namespace penstock::cli {

// RDMA.
Findings ProbeDevices(const Host& host);    // devices, ports, GIDs, MTU
Findings ProbeRdmaFiles(const Host& host);  // libraries, modules, /dev
Findings ProbeLockedMemory(const Host& host);
Findings ProbeIpoib(const Host& host);

// Shared memory.
Findings ProbeSharedMemory(const Host& host);  // memfd, sockets, containers
Findings ProbeHugePages(const Host& host);
Findings ProbeMemoryLimit(const Host& host);  // of the control group
Findings ProbePtrace(const Host& host);

// The process and the machine.
Findings ProbeGrpc(const Host& host);
Findings ProbeSettings(const Host& host);
Findings ProbeCores(const Host& host);
Findings ProbeOpenFiles(const Host& host);
Findings ProbeClock(const Host& host);

// GPUs.
Findings ProbeCuda(const Host& host);

// All of the above, in the order in which they are shown.
Findings ProbeAll(const Host& host);

// What can carry a connection of a process that is started on `host`.
std::vector<PathVerdict> JudgePaths(const Host& host);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_PROBES_H_
