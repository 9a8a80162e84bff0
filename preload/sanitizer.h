// Programs that are built with a sanitizer.

#ifndef PENSTOCK_PRELOAD_SANITIZER_H_
#define PENSTOCK_PRELOAD_SANITIZER_H_

// Returns the name of the sanitizer under which this process runs; null if
// there is none. It would blame the program for what the library does, which is
// built without it.
const char* Sanitizer(void);

#endif  // PENSTOCK_PRELOAD_SANITIZER_H_
