// Ends the shared memory paths between both sides of this process.

#ifndef PENSTOCK_TESTS_E2E_SHM_LOSS_H_
#define PENSTOCK_TESTS_E2E_SHM_LOSS_H_

namespace penstock::e2e {

// Shuts down the sockets that report a peer's death to the two sides of each
// path. Returns the number of sockets.
int TearDownSharedMemory();

// Makes both sides of each path believe that the other side has closed the
// path. Both sides continue to read their input. Keeps the path's socket open.
// After a shutdown, each side would assume that the other side no longer reads,
// and would reuse memory that is still being read.
void BreakSharedMemory();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SHM_LOSS_H_
