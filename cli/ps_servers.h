// The arguments SERVER... and their options, which several commands share.

#ifndef PENSTOCK_CLI_PS_SERVERS_H_
#define PENSTOCK_CLI_PS_SERVERS_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client_options.h"
#include "cli/ps/status_view.h"
#include "grpcpp/channel.h"

namespace penstock::cli {

class PsServers {
 public:
  using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

  // Adds SERVER..., --timeout, --secret and the TLS options. SERVER may be one
  // etcd://HOST:PORT/PREFIX, where the servers are registered.
  void Declare(CLI::App* app);
  // Adds TRAINING, an etcd://HOST:PORT/PREFIX, and the same options as
  // Declare().
  void DeclareTraining(CLI::App* app);
  // Returns INVALID_ARGUMENT for invalid arguments, such as a server without a
  // port.
  absl::Status Check();
  // Returns a new channel to each server. Uses stock gRPC, because a query
  // needs neither a faster path nor the server's settings. With an etcd://
  // argument, finds the servers in etcd, within timeout(). Returns an error if
  // a file is unusable, or if etcd or a registered server is missing.
  absl::StatusOr<Channels> Open();
  // Queries all servers in parallel, over the channels of Open(). Returns their
  // reports in the order of the arguments. If shards are replicated, returns
  // the reports of the shards' primaries instead, in the order of the shards,
  // and then the servers that do not answer.
  std::vector<ServerStatus> Describe(const Channels& channels) const;

  absl::Duration timeout() const { return client_.timeout(); }
  // Returns TRAINING.
  const std::string& training() const { return training_; }

 private:
  void DeclareOptions(CLI::App* app);

  std::vector<std::string> names_;
  std::string training_;  // empty if SERVER... was given
  ClientOptions client_;
  std::string secret_file_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_SERVERS_H_
