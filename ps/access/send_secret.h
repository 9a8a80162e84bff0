// Sends a client's secret.

#ifndef PENSTOCK_PS_ACCESS_SEND_SECRET_H_
#define PENSTOCK_PS_ACCESS_SEND_SECRET_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/client_interceptor.h"

namespace penstock::ps {

// Returns the secret that a client sends: the first of the file at `path`, read
// by ReadSecrets(). Returns "" if `path` is empty.
absl::StatusOr<std::string> ReadSecretToSend(const std::string& path);

// A function that returns the secret to send now. Thread-safe. Null if there is
// none.
using SecretSource = std::function<std::string()>;

// Returns a source that follows a file: like ReadSecretToSend(), but reads the
// file again every `interval` if asked. Keeps the former secret while the file
// is invalid. Returns an error if the file is invalid now, and null if `path`
// is empty.
absl::StatusOr<SecretSource> FollowSecret(
    const std::string& path, absl::Duration interval = absl::Seconds(1));

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
// Asks `source` for the secret of each call, so that a channel outlives a
// change of the secret.
InterceptorFactories SendSecret(SecretSource source);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_SEND_SECRET_H_
