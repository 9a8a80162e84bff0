// Credentials that make every call fail.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_REFUSING_CREDENTIALS_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_REFUSING_CREDENTIALS_H_

#include <memory>
#include <string>

#include "grpcpp/security/credentials.h"

namespace penstock {
namespace core {

// Returns credentials that make every call of a channel fail with
// FAILED_PRECONDITION and `why`. Uses only those parts of gRPC that are
// identical in every release.
std::shared_ptr<grpc::ChannelCredentials> RefusingCredentials(std::string why);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_REFUSING_CREDENTIALS_H_
