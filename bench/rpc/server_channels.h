// The channels of a client to its server, for one (transport, API).

#ifndef PENSTOCK_BENCH_RPC_SERVER_CHANNELS_H_
#define PENSTOCK_BENCH_RPC_SERVER_CHANNELS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/server/server_role.h"
#include "bench/rpc/setup/options.h"
#include "bench/rpc/setup/usage.h"
#include "grpcpp/channel.h"

namespace penstock {
namespace bench {

// Connected channels over the requested transport. The destructor closes the
// channels, then ends the server.
class ServerChannels {
 public:
  // Starts a server and connects to it, or connects once to each of
  // options.server_addresses. Returns UNAVAILABLE, with the reason, if this
  // machine or build cannot connect over `transport`. Any other error means
  // that something is broken.
  static absl::StatusOr<std::unique_ptr<ServerChannels>> Open(
      const RunOptions& options, Transport transport, Api api);

  // Returns the channels. Their number is as in the options, and each has its
  // own connection.
  const std::vector<std::shared_ptr<grpc::Channel>>& channels() const {
    return channels_;
  }

  // Returns OK while `transport` carries all channels, otherwise UNAVAILABLE.
  absl::Status CheckPaths() const;

  // Returns the combined usage of the client's and the server's process.
  absl::StatusOr<Usage> CurrentUsage() const;
  // Returns the combined CPU seconds of both processes.
  absl::StatusOr<double> CurrentCpuSeconds() const;
  // Returns the usage of both processes when only the first channel was open.
  const Usage& usage_of_first() const { return usage_of_first_; }

 private:
  explicit ServerChannels(Transport transport) : transport_(transport) {}
  absl::Status StartServer(const RunOptions& options, Api api);
  absl::Status AddChannel(const RunOptions& options);
  absl::Status Probe(const std::shared_ptr<grpc::Channel>& channel) const;
  absl::Status CheckPath(grpc::Channel& channel) const;

  const Transport transport_;
  Usage usage_of_first_;
  // Declared before the channels, because the channels must be destroyed before
  // the server.
  std::unique_ptr<Server> in_process_;  // inproc
  RemoteServer remote_;                 // every other transport
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVER_CHANNELS_H_
