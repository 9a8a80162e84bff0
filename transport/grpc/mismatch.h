// Whether the gRPC that is loaded is the one this was built for.

#ifndef PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_
#define PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_

namespace penstock {
namespace core {

// Null if the libgrpc that is loaded is the one transport/grpc was compiled
// for; else the sentence that says which one it is.
const char* GrpcMismatch();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_MISMATCH_H_
