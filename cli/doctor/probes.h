// The probes of `penstock doctor`. Each probe is a pure function of a Host, and
// returns its findings in display order.
//
// A working facility has Level::kOk. A missing RDMA device or GPU is no
// problem: it causes at most a note. kProblem is reserved for a facility that
// exists or was requested, and does not work.

#ifndef PENSTOCK_CLI_DOCTOR_PROBES_H_
#define PENSTOCK_CLI_DOCTOR_PROBES_H_

#include <vector>

#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"

namespace penstock::cli {

// Probes of RDMA.
Findings ProbeDevices(const Host& host);    // devices, ports, GIDs, MTU
Findings ProbeRdmaFiles(const Host& host);  // libraries, modules, /dev
Findings ProbeLockedMemory(const Host& host);
Findings ProbeIpoib(const Host& host);

// Probes of shared memory.
Findings ProbeSharedMemory(const Host& host);  // memfd, sockets, containers
Findings ProbeHugePages(const Host& host);
Findings ProbeMemoryLimit(const Host& host);  // of the control group
Findings ProbePtrace(const Host& host);

// Probes of the process and the machine.
Findings ProbeGrpc(const Host& host);
Findings ProbePython(const Host& host);  // programs of `penstock run`
Findings ProbeSettings(const Host& host);
Findings ProbeCores(const Host& host);
Findings ProbeOpenFiles(const Host& host);
Findings ProbeClock(const Host& host);

// Probes of GPUs.
Findings ProbeCuda(const Host& host);

// Runs all probes, and returns their findings in display order.
Findings ProbeAll(const Host& host);

// Returns the fabrics that can carry connections of a process on `host`.
std::vector<PathVerdict> JudgePaths(const Host& host);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_PROBES_H_
