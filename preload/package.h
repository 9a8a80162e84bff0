// Makes Python programs use the package penstock.grpc, with any grpcio.

#ifndef PENSTOCK_PRELOAD_PACKAGE_H_
#define PENSTOCK_PRELOAD_PACKAGE_H_

#include <stddef.h>

// Runs the code of penstock/grpc/_run.py in the calling thread's Python, which
// is about to load the cygrpc module `file`. Returns 1 on success. Otherwise
// returns 0, and writes the reason to `why`.
int UsePackage(const char* file, char* why, size_t size);

#endif  // PENSTOCK_PRELOAD_PACKAGE_H_
