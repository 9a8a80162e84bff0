// Ends the shared memory paths between both sides of this process.

#ifndef PENSTOCK_TESTS_E2E_SHM_LOSS_H_
#define PENSTOCK_TESTS_E2E_SHM_LOSS_H_

namespace penstock::e2e {

// Shuts down the sockets by which the two sides of each path see each other's
// death. Returns the number of sockets.
int TearDownSharedMemory();

// Tells both sides of each path that the other has closed the path. Both
// continue reading their input. Does not shut down the path's socket, because
// this would mean that nobody reads any more, and memory would be reused while
// somebody reads it.
void BreakSharedMemory();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SHM_LOSS_H_
