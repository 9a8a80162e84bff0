// Checks that the libgrpc that is loaded is the one this was built for.

#ifndef PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_
#define PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_

namespace penstock {
namespace core {

// Returns null if the libgrpc that is loaded is the one that transport/grpc was
// compiled for, as far as it tells: its release, its abseil, the size of a
// struct. If not, returns a sentence that names the loaded libgrpc.
// Thread-safe.
const char* GrpcMismatch();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_
