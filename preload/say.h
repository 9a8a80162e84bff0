// Writes lines to the log.

#ifndef PENSTOCK_PRELOAD_SAY_H_
#define PENSTOCK_PRELOAD_SAY_H_

// Writes one line to standard error, in the format of the library's log, unless
// PENSTOCK_LOG excludes warnings. Does not wait for a reader. Thread-safe.
void Say(const char* format, ...) __attribute__((format(printf, 1, 2)));

#endif  // PENSTOCK_PRELOAD_SAY_H_
