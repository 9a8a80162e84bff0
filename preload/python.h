// The module by which Python uses gRPC: cygrpc, of the package grpcio.

#ifndef PENSTOCK_PRELOAD_PYTHON_H_
#define PENSTOCK_PRELOAD_PYTHON_H_

// Whether dlopen() is about to load such a module.
int IsCygrpc(const char* file);

// Opens ours in its place; or, if that cannot be, says so in the log and opens
// the file itself. With PENSTOCK_POLICY=require that fails instead, and
// dlerror() says why. `file` has a slash, so it does not matter who opens it.
void* OpenCygrpc(const char* file, int mode);

// Returns null, and has dlerror() say why in this thread.
void* RefuseToOpen(const char* file, const char* why);

#endif  // PENSTOCK_PRELOAD_PYTHON_H_
