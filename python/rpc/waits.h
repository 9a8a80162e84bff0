// Waits of Python's threads.

#ifndef PENSTOCK_PYTHON_RPC_WAITS_H_
#define PENSTOCK_PYTHON_RPC_WAITS_H_

#include <functional>

#include "absl/time/time.h"
#include "python/rpc/event.h"

namespace penstock::python {

// Converts a timeout of Python to a duration. Negative means no timeout.
absl::Duration TimeoutOf(double seconds);

enum class Waited { kSet, kDeadline, kInterrupted };

// Calls wait_until() with times up to `deadline` (of base::SteadyNow()), until
// wait_until() returns true because the awaited event has happened. On the main
// thread, also ends after a signal handler has raised an exception, which
// ThrowIfRaised() throws. Call this function Unlocked.
Waited WaitFor(const std::function<bool(absl::Time)>& wait_until,
               absl::Time deadline);
// Waits until the event is set.
Waited WaitFor(Event* event, absl::Time deadline);

// Makes this thread the main thread. Call it once, from the module.
void NoteMainThread();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_WAITS_H_
