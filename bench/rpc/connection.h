// One client connection with its server, for one (transport, API).

#ifndef PENSTOCK_BENCH_RPC_CONNECTION_H_
#define PENSTOCK_BENCH_RPC_CONNECTION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/options.h"
#include "bench/rpc/server.h"
#include "bench/rpc/server_role.h"
#include "grpcpp/channel.h"

namespace penstock {
namespace bench {

// A channel that is connected, and known to be carried by the transport that
// was asked for. Destruction closes the channel, then ends the server.
class Connection {
 public:
  // UNAVAILABLE with the reason if this machine or this build cannot connect
  // over `transport`; any other error means that something is broken.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const RunOptions& options, Transport transport, Api api);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Whether `transport` still carries the channel: UNAVAILABLE if not.
  absl::Status CheckPath() const;

 private:
  explicit Connection(Transport transport) : transport_(transport) {}
  absl::Status StartServer(const RunOptions& options, Api api);
  absl::Status Probe();

  const Transport transport_;
  // Members die in reverse order: the channel before the server.
  std::unique_ptr<Server> in_process_;  // inproc
  RemoteServer remote_;                 // every other transport
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CONNECTION_H_
