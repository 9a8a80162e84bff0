// Ends the shared memory paths between both sides of this process.

#ifndef PENSTOCK_TESTS_E2E_SHM_LOSS_H_
#define PENSTOCK_TESTS_E2E_SHM_LOSS_H_

namespace penstock::e2e {

// Ends the sockets by which the two sides of each path see each other's death.
// Returns their number.
int TearDownSharedMemory();

// Tells both sides of each path that the other has closed the path. Both
// continue reading their input. (The end of a path's socket would mean that
// nobody reads any more; memory would then be reused while it is read.)
void BreakSharedMemory();

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SHM_LOSS_H_
