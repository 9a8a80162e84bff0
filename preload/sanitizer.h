// Detects programs that are built with a sanitizer.

#ifndef PENSTOCK_PRELOAD_SANITIZER_H_
#define PENSTOCK_PRELOAD_SANITIZER_H_

// Returns the name of this process's sanitizer, or null. The library is not
// instrumented, so a sanitizer would report its behaviour as errors of the
// program.
const char* Sanitizer(void);

#endif  // PENSTOCK_PRELOAD_SANITIZER_H_
