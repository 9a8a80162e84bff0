// Reads and lowers the security level of a connection.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_PRIVACY_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_PRIVACY_H_

#include "src/core/lib/channel/channel_args.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// Returns true if the connection promises privacy: according to its security,
// nobody else can read or change the traffic. `args` come from the security
// handshake. A handshake without a security level counts as a promise of
// privacy.
bool PromisesPrivacy(const grpc_core::ChannelArgs& args);

// Sets the security level in the handshake's result to "none". The application
// and gRPC see this level, and gRPC sends no credentials that need privacy.
void LowerSecurityLevel(const grpc_core::ChannelArgs& args);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_PRIVACY_H_
