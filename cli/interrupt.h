// Lets Ctrl-C end a long-running command early, with its summary.

#ifndef PENSTOCK_CLI_INTERRUPT_H_
#define PENSTOCK_CLI_INTERRUPT_H_

#include "absl/time/time.h"

namespace penstock::cli {

// Makes SIGINT and SIGTERM set a flag instead of ending the process. A second
// signal ends the process as usual if it comes half a second or more after the
// first. Earlier signals are ignored because `timeout`, or a terminal, may
// deliver a signal twice: to the process and to its group. Call this function
// before any thread is started.
void WatchInterrupts();

// Returns true if SIGINT or SIGTERM has arrived.
bool Interrupted();

// Sleeps until base::SteadyNow() reaches `time`, or until a signal comes.
void SleepUntil(absl::Time time);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_INTERRUPT_H_
