// Which client a call comes from.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLER_H_
#define PENSTOCK_TENSOR_SERVICE_CALLER_H_

#include <string>

#include "grpcpp/server_context.h"

namespace penstock::tensor {

// Returns whose share the call takes, see ClientShares: the identity that the
// security handshake has verified, if there is one, and else the address and
// port of the connection. So a client that is not known by a certificate has a
// share for each of its connections. Never empty.
std::string CallerOf(const grpc::ServerContextBase& context);

// The metadata by which a client says that several of its calls are its own,
// whatever connections they come by. Its value is a secret that the client has
// drawn, of at most kMaxClientSecretBytes.
inline constexpr char kClientSecretKey[] = "penstock-tensor-client";
inline constexpr size_t kMaxClientSecretBytes = 64;

// Returns who takes part in a step, see StepMembers: the client's secret, or
// else CallerOf().
std::string MemberOf(const grpc::ServerContextBase& context);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLER_H_
