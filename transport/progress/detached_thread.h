// A thread of the library's, beside those of the application.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_
#define PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_

#include "absl/status/status.h"

namespace penstock {
namespace progress {

// Runs `main(argument)` on a thread that takes no signals and that nobody
// joins. `name` has at most 15 bytes. RESOURCE_EXHAUSTED for one thread too
// many.
absl::Status StartDetachedThread(const char* name, void* (*main)(void*),
                                 void* argument);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_DETACHED_THREAD_H_
