// The replicas of a ps_server process.

#ifndef PENSTOCK_PS_REPLICAS_H_
#define PENSTOCK_PS_REPLICAS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "penstock/metrics.h"
#include "ps/register.h"
#include "ps/server/server.h"
#include "ps/shards/peers.h"
#include "ps/shards/shards.h"
#include "ps/views/board.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Returns the port of `listen`, the value of --listen. Returns INVALID_ARGUMENT
// for port 0 and for UNIX sockets: a server with replicas must return to the
// same address after a restart.
absl::StatusOr<int> FixedPort(absl::string_view listen);

// The shards that this process holds, the channels to the other servers, and
// the newest view. Thread-safe, except for the constructor and the destructor.
class ProcessReplicas {
 public:
  struct Options {
    unsigned replicas = 1;  // backups of each shard
    std::string address;    // the address by which the others reach this server
    // Creates the server of a shard that has moved here from another process.
    std::function<std::unique_ptr<Server>()> new_server;
    // Makes a channel to another server.
    std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>
        connect;
    // See ShardOptions.
    checkpoint::Files* checkpoints = nullptr;
    CheckpointWriter* claim = nullptr;
    absl::Duration worker_lease;
    absl::Duration assemble_timeout;
    std::function<void(const std::string&)> log;
  };

  // `own` has options from ForReplica(), and must outlive this object.
  ProcessReplicas(const Options& options, Server* own);

  Shards* shards() { return &shards_; }
  ServerRegistration::Replicas registration() { return {&shards_, &board_}; }
  // Returns the reply to GetView().
  v1::GetViewReply View() const;
  // Returns the metrics of the replicas.
  std::vector<MetricFamily> Metrics() const;
  // Ends all waiting calls. Call before the gRPC server is shut down.
  void Stop() { shards_.Stop(); }

 private:
  const unsigned replicas_;
  views::Board board_;
  const std::unique_ptr<Peers> peers_;
  Shards shards_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_REPLICAS_H_
