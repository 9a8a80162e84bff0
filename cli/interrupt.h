// Ctrl-C: a command that runs for long ends early, with its summary.

#ifndef PENSTOCK_CLI_INTERRUPT_H_
#define PENSTOCK_CLI_INTERRUPT_H_

#include "absl/time/time.h"

namespace penstock::cli {

// From now on SIGINT and SIGTERM are only remembered. One that comes half a
// second or more after the first ends the process as usual: a process that
// `timeout`, or a terminal, signals with its group gets the same twice at once.
// Call it before any thread is started.
void WatchInterrupts();

// Whether one has come.
bool Interrupted();

// Sleeps until then, or until one comes.
void SleepUntil(absl::Time time);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_INTERRUPT_H_
