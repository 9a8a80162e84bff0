// Detects programs that are built with a sanitizer.

#ifndef PENSTOCK_PRELOAD_SANITIZER_H_
#define PENSTOCK_PRELOAD_SANITIZER_H_

// Returns the name of this process's sanitizer, or null. A sanitizer would
// report the behaviour of the library, which is not instrumented, as errors of
// the program.
const char* Sanitizer(void);

#endif  // PENSTOCK_PRELOAD_SANITIZER_H_
