// The gRPC for which this Penstock is built.

#ifndef PENSTOCK_PRELOAD_RELEASE_H_
#define PENSTOCK_PRELOAD_RELEASE_H_

// The sonames of gRPC's core and C++ libraries, and a name for people. The
// library determines the exact release. CMakeLists.txt defines other sonames.
#ifndef PENSTOCK_GRPC_CORE
#define PENSTOCK_GRPC_CORE "libgrpc.so.29"
#define PENSTOCK_GRPC_CPP "libgrpc++.so.1.51"
#define PENSTOCK_GRPC_RELEASE "1.51.1"
#endif

#endif  // PENSTOCK_PRELOAD_RELEASE_H_
