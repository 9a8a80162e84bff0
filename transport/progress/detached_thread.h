// Starts the library's own threads.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_
#define PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_

#include "absl/status/status.h"

namespace penstock {
namespace progress {

// Runs `main(argument)` on a new thread, which takes no signals and is not
// joined. `name` has at most 15 bytes. Returns RESOURCE_EXHAUSTED if the
// process or user has too many threads, or no address space for the stack.
absl::Status StartDetachedThread(const char* name, void* (*main)(void*),
                                 void* argument);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_
