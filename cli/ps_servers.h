// Parameter servers to ask: what commands with SERVER... share.

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

  // Adds SERVER..., --timeout, --secret and the options of TLS.
  void Declare(CLI::App* app);
  // Returns INVALID_ARGUMENT for a server without a port, and so on.
  absl::Status Check();
  // Returns a new channel over stock gRPC to each: a look-up needs no faster
  // path, and this process none of its server's settings.
  // Returns an error if a file cannot be used.
  absl::StatusOr<Channels> Open() const;
  // Asks all of them at once, over the channels of Open(). Returns what they
  // say of themselves, in the order in which they were given.
  std::vector<ServerStatus> Describe(const Channels& channels) const;

  absl::Duration timeout() const { return client_.timeout(); }

 private:
  std::vector<std::string> names_;
  ClientOptions client_;
  std::string secret_file_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_SERVERS_H_
