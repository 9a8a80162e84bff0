// Channel credentials with which a channel offers Penstock on its connections.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CREDENTIALS_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CREDENTIALS_H_

#include <grpc/grpc.h>

#include <memory>

#include "grpcpp/security/credentials.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// Returns credentials that secure connections like `credentials` and offer
// Penstock with `settings`. Returns null if `credentials` is null.
std::shared_ptr<grpc::ChannelCredentials> WrapCredentials(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const Settings& settings);

// Wraps the credentials of gRPC's core, as the function above does. If
// `credentials` are or contain wrapped credentials, keeps their settings and
// ignores `settings`. The result holds a reference of its own to `credentials`.
// The caller releases the result with grpc_channel_credentials_release().
grpc_channel_credentials* WrapCredentials(grpc_channel_credentials* credentials,
                                          const Settings& settings);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CREDENTIALS_H_
