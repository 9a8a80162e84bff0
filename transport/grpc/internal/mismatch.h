// Checks that the loaded libgrpc is the one that Penstock was built for.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_MISMATCH_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_MISMATCH_H_

namespace penstock {
namespace core {

// Returns null if the loaded libgrpc is the one that transport/grpc was
// compiled for. Compares the release, the language (C++14 or C++17), the abseil
// release, and the size of a struct. Otherwise returns a sentence that names
// the loaded libgrpc. Thread-safe.
const char* GrpcMismatch();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_MISMATCH_H_
