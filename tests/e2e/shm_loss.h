// Ends the shared memory paths between both sides of this process.

#ifndef PENSTOCK_TESTS_E2E_SHM_LOSS_H_
#define PENSTOCK_TESTS_E2E_SHM_LOSS_H_

namespace penstock::e2e {

// Shuts down the sockets by which the two sides of each path see each other's
// death. Returns the number of sockets.
int TearDownSharedMemory();

// Tells both sides of each path that the other side has closed the path. Both
// sides continue to read their input. Does not shut down the path's socket:
// otherwise each side would assume that the other no longer reads, and would
// reuse memory that is still being read.
void BreakSharedMemory();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SHM_LOSS_H_
