// Makes the channels from a parameter server to the others of its training.

#ifndef PENSTOCK_PS_OTHER_SERVERS_H_
#define PENSTOCK_PS_OTHER_SERVERS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "ps/client/training_connection.h"
#include "ps/server/server.h"
#include "ps/server_flags.h"

namespace penstock::ps {

// A function that makes a channel to the server at an address, with the files
// of the flags. Thread-safe.
using Connect =
    std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;

// Returns an error if a file of the flags cannot be used.
absl::StatusOr<Connect> ToOtherServers(const ServerFlags& flags);

// Returns the server that has the values of shard 0, if it is in this process;
// else null.
using FindFirst = std::function<std::shared_ptr<const Server>()>;

// Returns a function that makes a channel to each server of the training. The
// function returns no channels if shard 0 is in another process.
absl::StatusOr<std::function<TrainingConnection::Channels()>> ToAllServers(
    const ServerFlags& flags, FindFirst find);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_OTHER_SERVERS_H_
