// Identifies the client of a call.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_CALLER_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_CALLER_H_

#include <string>

#include "grpcpp/server_context.h"

namespace penstock::tensor {

// Returns the name under which ClientShares counts the call: the identity that
// the security handshake verified. If there is none, the name is the
// connection's address and port, so an unauthenticated client has one share for
// each connection. Never empty.
std::string CallerOf(const grpc::ServerContextBase& context);

// The metadata key by which a client marks its calls as its own, even over
// different connections. The value is a random secret of at most
// kMaxClientSecretBytes, which the client has drawn.
inline constexpr char kClientSecretKey[] = "penstock-tensor-client";
inline constexpr size_t kMaxClientSecretBytes = 64;

// Returns the name under which StepMembers knows the caller: the client's
// secret, or CallerOf() without a secret.
std::string MemberOf(const grpc::ServerContextBase& context);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_CALLER_H_
