// The library that carries: libpenstock.so.0.

#ifndef PENSTOCK_PRELOAD_LIBRARY_H_
#define PENSTOCK_PRELOAD_LIBRARY_H_

#include "transport/preload.h"

// Opens the library, at the first call, which is to come before gRPC is used.
// Returns null if Penstock is not to be used in this process, or cannot be; a
// line in the log then says why. Threads may call it at once.
const struct PenstockPreload* OpenLibrary(void);

// Returns the library if it is open.
const struct PenstockPreload* Library(void);
// Returns 1 if opening it was tried and failed, else 0.
int LibraryFailed(void);

// Whether the process wants no Penstock: PENSTOCK_POLICY=off, or it has more
// rights than its caller.
int IsOff(void);

// Whether what cannot be carried is to fail: PENSTOCK_POLICY=require.
int IsRequired(void);

#endif  // PENSTOCK_PRELOAD_LIBRARY_H_
