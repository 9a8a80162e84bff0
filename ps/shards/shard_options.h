// The settings that all shards of a process share.

#ifndef PENSTOCK_PS_SHARDS_SHARD_OPTIONS_H_
#define PENSTOCK_PS_SHARDS_SHARD_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "ps/checkpoint/files.h"
#include "ps/replication/lease.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/shards/peers.h"

namespace penstock::ps {

struct ShardOptions {
  // Creates a server that restores the values of another server. The options of
  // its membership must be those of ForReplica().
  std::function<std::unique_ptr<Server>()> new_server;
  // Sends messages to the other replicas. Outlives the shards.
  Peers* peers = nullptr;
  // The leases of workers, which the primary measures itself.
  absl::Duration worker_lease = absl::Seconds(10);
  absl::Duration assemble_timeout = absl::Seconds(60);
  // The time between two heartbeats to a replica is a quarter of the lease.
  replication::LeaseTimes lease;
  size_t max_log_bytes = size_t{4} << 30;
  // Limits the bytes of a snapshot that a primary may send to this process.
  size_t max_snapshot_bytes = size_t{64} << 30;
  // The folder of checkpoints; null: there is none. Outlives the shards.
  checkpoint::Files* checkpoints = nullptr;
  // Locks the folder before the first view. Null without a folder.
  CheckpointWriter* claim = nullptr;
  // The version of the program. All replicas need the same.
  std::string build;
  // Called with lines for people. If empty, they go to Penstock's log.
  std::function<void(const std::string&)> log;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SHARD_OPTIONS_H_
