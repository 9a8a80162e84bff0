// Replaces cygrpc, the module by which Python uses gRPC. cygrpc belongs to the
// package grpcio.

#ifndef PENSTOCK_PRELOAD_PYTHON_H_
#define PENSTOCK_PRELOAD_PYTHON_H_

// Returns true if `file` is a cygrpc module, which dlopen() is about to load.
int IsCygrpc(const char* file);

// Opens Penstock's module instead of `file`. If that is impossible, logs the
// reason and opens `file`. With PENSTOCK_POLICY=require, fails instead, and
// dlerror() returns the reason. `file` must have a slash, so that the loader
// does not search for it on behalf of the calling library.
void* OpenCygrpc(const char* file, int mode);

// Returns null, and sets the text that dlerror() returns in this thread.
void* RefuseToOpen(const char* file, const char* why);

#endif  // PENSTOCK_PRELOAD_PYTHON_H_
