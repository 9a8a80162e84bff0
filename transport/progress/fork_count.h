// Distinguishes the child of a fork from its parent.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_
#define PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_

#include <cstdint>

namespace penstock {
namespace progress {

// Returns a number that is one higher in the child of each fork() after the
// first call. An object that shares a socket or memory with another process
// stores the number at its creation. If the number is different later, the
// process is a forked child, and must not touch the parent's resources. Costs
// one atomic load. Thread-safe.
uint32_t ForkCount();

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_
