// Waits for the servers, and explains early why a server is unreachable.

#ifndef PENSTOCK_PS_CLIENT_REACH_H_
#define PENSTOCK_PS_CLIENT_REACH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Limits how long a server may close every connection before this client
// concludes that the server refuses them. Within the limit, the server may be
// restarting, or a proxy may be waiting for the server.
constexpr absl::Duration kClosedLimit = absl::Seconds(5);

// Blocks until each server has answered. Asks the servers one after another,
// and waits for each before asking the next.
//
// Servers that replicate their shards serve without those that are gone.
// Returns OK as soon as one of them knows a view. Sets `view`, unless it is
// null, to a server's answer to GetView(), without replicas if shards are not
// replicated. Errors name the server by its index, the cause, and the remedy:
//   UNAUTHENTICATED    the TLS handshake fails; returned at once
//   UNAVAILABLE        the server has closed each connection for kClosedLimit:
//                      a TLS server does so if the client's certificate is
//                      missing or untrusted
//   DEADLINE_EXCEEDED  `timeout` is over
absl::Status AwaitServers(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers,
    absl::Duration timeout, v1::GetViewReply* view = nullptr);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_REACH_H_
