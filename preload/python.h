// The module by which Python uses gRPC: cygrpc, of the package grpcio.

#ifndef PENSTOCK_PRELOAD_PYTHON_H_
#define PENSTOCK_PRELOAD_PYTHON_H_

// Whether dlopen() is about to load such a module.
int IsCygrpc(const char* file);

// Returns what is to be loaded for it, and says in the log if that is not ours
// but its own file. With PENSTOCK_POLICY=require that is text that says why,
// and is no file's name. Lives for ever.
const char* CygrpcFor(const char* file);

#endif  // PENSTOCK_PRELOAD_PYTHON_H_
