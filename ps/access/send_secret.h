// The client's side of access by a secret.

#ifndef PENSTOCK_PS_ACCESS_SEND_SECRET_H_
#define PENSTOCK_PS_ACCESS_SEND_SECRET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/client_interceptor.h"

namespace penstock::ps {

// Returns the secret that a client sends: the first of the file, which is read
// as ReadSecrets() says. Returns "" if `path` is empty.
absl::StatusOr<std::string> ReadSecretToSend(const std::string& path);

using InterceptorFactories = std::vector<
    std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

// Has each call of a channel carry `authorization: Bearer SECRET`, whether it
// is made by a typed or a generic stub, and streams as well:
//
//   grpc::experimental::CreateCustomChannelWithInterceptors(
//       target, credentials, arguments, SendSecret(secret));
//
// Without a secret nothing is sent. gRPC's call credentials would be the usual
// way, but it refuses them on a channel without TLS, for which this is made.
// Whoever serves at `target` gets the secret, and so does who reads the network
// in between.
//
// No interceptor runs: the factory adds the metadata when a call is made, which
// is all that it costs.
InterceptorFactories SendSecret(const std::string& secret);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_SEND_SECRET_H_
