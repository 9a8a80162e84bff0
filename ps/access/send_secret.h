// Sends a client's secret.

#ifndef PENSTOCK_PS_ACCESS_SEND_SECRET_H_
#define PENSTOCK_PS_ACCESS_SEND_SECRET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/client_interceptor.h"

namespace penstock::ps {

// Returns the secret that a client sends: the first of the file at `path`, read
// by ReadSecrets(). Returns "" if `path` is empty.
absl::StatusOr<std::string> ReadSecretToSend(const std::string& path);

using InterceptorFactories = std::vector<
    std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

// Returns factories that add `authorization: Bearer SECRET` to each call of a
// channel, by typed and generic stubs, including streams:
//
//   grpc::experimental::CreateCustomChannelWithInterceptors(
//       target, credentials, arguments, SendSecret(secret));
//
// Sends nothing if `secret` is empty. Works without TLS, unlike gRPC's
// call credentials. The server at `target` learns the secret. Without TLS,
// everybody on the network between also learns the secret.
//
// The factory adds the metadata when a call is made, which is the only cost: no
// interceptor runs.
InterceptorFactories SendSecret(const std::string& secret);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_SEND_SECRET_H_
