// Channel credentials that make a channel's connections offer Penstock.

#ifndef PENSTOCK_TRANSPORT_GRPC_CREDENTIALS_H_
#define PENSTOCK_TRANSPORT_GRPC_CREDENTIALS_H_

#include <grpc/grpc.h>

#include <memory>

#include "grpcpp/security/credentials.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// Returns credentials that secure a connection as `credentials` do, and make
// its channels offer Penstock, with `settings`. Returns null for null.
std::shared_ptr<grpc::ChannelCredentials> WrapCredentials(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const Settings& settings);

// The same for gRPC's core. If `credentials` are or contain wrapped credentials
// already, keeps their settings and ignores `settings`. The result takes a
// reference of its own to `credentials`; the caller releases it by
// grpc_channel_credentials_release().
grpc_channel_credentials* WrapCredentials(grpc_channel_credentials* credentials,
                                          const Settings& settings);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_CREDENTIALS_H_
