// The library that carries a program's calls: libpenstock.so.0.

#ifndef PENSTOCK_PRELOAD_LIBRARY_H_
#define PENSTOCK_PRELOAD_LIBRARY_H_

#include "transport/preload.h"

// Opens the library on the first call, which must precede the first use of
// gRPC. Returns null, and logs the reason, if this process cannot or must not
// use Penstock. Thread-safe.
const struct PenstockPreload* OpenLibrary(void);

// Returns the library, or null if it is not open.
const struct PenstockPreload* Library(void);
// Returns 1 if opening the library failed, and otherwise 0.
int LibraryFailed(void);

// Returns true if this process must not use Penstock: PENSTOCK_POLICY is off,
// or the process has more rights than its caller.
int IsOff(void);

// Returns true if calls that cannot be carried must fail: PENSTOCK_POLICY is
// require.
int IsRequired(void);

#endif  // PENSTOCK_PRELOAD_LIBRARY_H_
