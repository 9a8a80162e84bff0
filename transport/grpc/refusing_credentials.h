// Credentials with which every call fails.

#ifndef PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_
#define PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_

#include <memory>
#include <string>

#include "grpcpp/security/credentials.h"

namespace penstock {
namespace core {

// Returns credentials with which every call of a channel ends with
// FAILED_PRECONDITION and `why`. Uses only parts of gRPC that are the same in
// every release.
std::shared_ptr<grpc::ChannelCredentials> RefusingCredentials(std::string why);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_
