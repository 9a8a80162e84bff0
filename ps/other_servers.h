// Finds the other servers of a parameter server's training, and connects to
// them.

#ifndef PENSTOCK_PS_OTHER_SERVERS_H_
#define PENSTOCK_PS_OTHER_SERVERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "ps/server/server.h"
#include "ps/server_flags.h"

namespace penstock::ps {

// A function that makes a channel to the server at an address, with the TLS and
// secret files of the flags. Thread-safe.
using Connect =
    std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;

// Returns a Connect function, or an error if a file of the flags cannot be
// used.
absl::StatusOr<Connect> ToOtherServers(const ServerFlags& flags);

// A function that returns the server with the values of shard 0 if this process
// has it, and null otherwise.
using FindFirst = std::function<std::shared_ptr<const Server>()>;

// A function that returns the addresses of all servers in the newest view, in
// the order of the shards. Returns an empty list if shards are not replicated,
// or before the first view.
using ServersInView = std::function<std::vector<std::string>()>;

// Returns a function that returns the address of each server of the training.
// Uses the newest view if there is one, because a replacement server is in the
// view and not in the placement. The function returns no addresses if shard 0
// is in another process.
ServersInView AllServers(FindFirst find, ServersInView in_view);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_OTHER_SERVERS_H_
