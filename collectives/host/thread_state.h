// Distinguishes a thread that waits for a core from a thread that was stopped.

#ifndef PENSTOCK_COLLECTIVES_HOST_THREAD_STATE_H_
#define PENSTOCK_COLLECTIVES_HOST_THREAD_STATE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::collectives {

// A thread as /proc shows it.
struct ThreadState {
  // The kernel's letter: R means running or waiting for a core, D waiting for a
  // disk, T and t stopped.
  char letter = 0;
  // The time at which the thread started. The number of the thread and this
  // time identify the thread in all PID namespaces of a machine.
  uint64_t started = 0;
};

// Returns the state of the thread. Returns nothing if there is no such thread,
// or if /proc does not show the thread.
absl::optional<ThreadState> StateOfThread(uint64_t thread);

// Parses a file /proc/THREAD/stat. Returns nothing for other text.
absl::optional<ThreadState> ParseThreadState(absl::string_view text);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_THREAD_STATE_H_
