// Waits for the servers, and says soon why one cannot be reached.

#ifndef PENSTOCK_PS_CLIENT_REACH_H_
#define PENSTOCK_PS_CLIENT_REACH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace penstock::ps {

// A server that closes each connection for so long refuses them. For a shorter
// time it may be a process that ends and is started anew, or a proxy whose
// server is not up yet.
constexpr absl::Duration kClosedLimit = absl::Seconds(5);

// Blocks until each server has answered. Asks one after another, and waits for
// each that is not up yet before it asks the next. Errors name the server by
// its place, what is wrong, and the remedy:
//   UNAUTHENTICATED    the TLS handshake fails; returned at once
//   UNAVAILABLE        the server has closed each connection for kClosedLimit:
//                      one with TLS does so that gets no certificate, or one
//                      that it does not trust
//   DEADLINE_EXCEEDED  `timeout` is over
absl::Status AwaitServers(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers,
    absl::Duration timeout);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_REACH_H_
