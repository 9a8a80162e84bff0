// Servers with replicas, as processes, with an etcd.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_
#define PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ps/client/training_connection.h"
#include "ps/wire/ps.pb.h"
#include "tests/process/child.h"
#include "tests/ps/etcd/real_etcd.h"

namespace penstock::ps {

// Servers that share one etcd. Each has a fixed port. Not thread-safe.
class ReplicatedServers {
 public:
  // Starts etcd and the servers. `replicas` are the backups of each shard.
  ReplicatedServers(size_t servers, unsigned replicas, unsigned workers);
  ~ReplicatedServers();

  // Starts a server, or starts it anew. Returns false on failure.
  bool Start(size_t server);
  void Kill(size_t server) { servers_[server] = nullptr; }
  process::Child* process(size_t server) { return servers_[server].get(); }
  process::Child* etcd() { return etcd_->process(); }

  const std::vector<std::string>& addresses() const { return addresses_; }
  // Returns a new channel to each server.
  TrainingConnection::Channels Channels() const;
  // Returns the newest view that any server knows.
  v1::GetViewReply View() const;
  // Returns the server that leads a shard.
  size_t PrimaryOf(int shard) const;
  // Waits until each shard has all its backups. Returns false after the time.
  bool AwaitBackups(absl::Duration timeout = absl::Seconds(30)) const;

  // Returns the log of all processes, for people.
  std::string Logs() const;

 private:
  const unsigned replicas_;
  const unsigned workers_;
  const std::string folder_;
  std::unique_ptr<etcd::RealEtcd> etcd_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<process::Child>> servers_;
  int log_ = -1;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_
