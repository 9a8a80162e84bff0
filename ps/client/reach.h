// Waits for the servers, and says soon why one cannot be reached.

#ifndef PENSTOCK_PS_CLIENT_REACH_H_
#define PENSTOCK_PS_CLIENT_REACH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace penstock::ps {

// How long a server may close each connection before that counts as a refusal,
// and not as the end of a process that is started anew, or as a proxy whose
// server is not up yet.
constexpr absl::Duration kClosedLimit = absl::Seconds(5);

// Blocks until each server has answered. Waits for those that are not up yet.
// Errors name the server by its place, what is wrong, and the remedy:
// UNAUTHENTICATED, at once, if TLS does not come about; UNAVAILABLE if a server
// closes each connection for kClosedLimit, as one with TLS does that does not
// trust this side's certificate, or gets none; DEADLINE_EXCEEDED after
// `timeout`.
absl::Status AwaitServers(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers,
    absl::Duration timeout);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_REACH_H_
