// Tells a forked child from the process that it came from.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_
#define PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_

#include <cstdint>

namespace penstock {
namespace progress {

// Grows by one in the child of each fork() after the first call. An object
// that shares something with another process (a socket, shared memory) keeps
// the number from when it was made and, where it differs, touches nothing: the
// child has copies of what is the parent's. One atomic load.
uint32_t ForkCount();

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_FORK_COUNT_H_
