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

// Returns a function that makes a channel to each server of the training. The
// function returns no channels unless `server` is server 0 and has values.
absl::StatusOr<std::function<TrainingConnection::Channels()>> ToAllServers(
    const ServerFlags& flags, const Server* server);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_OTHER_SERVERS_H_
