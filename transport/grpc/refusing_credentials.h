// Credentials whose channels fail.

#ifndef PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_
#define PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_

#include <memory>
#include <string>

#include "grpcpp/security/credentials.h"

namespace penstock {
namespace core {

// Each call of a channel made with them ends with FAILED_PRECONDITION and
// `why`. Uses nothing of gRPC that differs between releases.
std::shared_ptr<grpc::ChannelCredentials> RefusingCredentials(std::string why);

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_REFUSING_CREDENTIALS_H_
