// Servers with replicas, as processes, with an etcd.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_
#define PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/training_connection.h"
#include "ps/wire/ps.pb.h"
#include "tests/process/child.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/network.h"

namespace penstock::ps {

// Servers that share one etcd. Each has a fixed port. Not thread-safe.
class ReplicatedServers {
 public:
  // The location of servers that run on hosts of their own: server i runs on
  // the host `first_host` + i.
  struct Hosts {
    const Network* network = nullptr;
    size_t first_host = 1;
    std::string etcd;  // the addresses of an etcd
  };

  // Starts etcd and the servers. Each shard has `replicas` backups. `flags` are
  // further flags of the servers.
  ReplicatedServers(size_t servers, unsigned replicas, unsigned workers,
                    std::vector<std::string> flags = {});
  // Starts servers with one backup of each shard.
  ReplicatedServers(const Hosts& hosts, size_t servers, unsigned workers,
                    std::vector<std::string> flags = {});
  ~ReplicatedServers();

  // Starts a server that is not running. Returns false on failure.
  bool Start(size_t server);
  // Starts a server with this name at another address, in place of one that was
  // killed.
  bool StartElsewhere(size_t server, const std::string& name);
  void Kill(size_t server) { servers_[server] = nullptr; }
  // From its next start on, limits each file that a server writes to 512 bytes,
  // like a quota that is used up. Also limits the log of the server.
  void TakeQuota(size_t server) { has_quota_[server] = false; }
  process::Child* process(size_t server) { return servers_[server].get(); }
  process::Child* etcd() { return etcd_->process(); }
  // Kills etcd, and starts an empty one at the same address.
  void WipeEtcd();

  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& etcd_address() const { return etcd_address_; }
  // Returns the training's etcd://.
  std::string target() const {
    return absl::StrCat("etcd://", etcd_address_, "/t");
  }
  // Runs `penstock ps COMMAND target() ARGUMENTS...`. Returns the exit code and
  // the output.
  std::pair<int, std::string> RunPs(
      const std::string& command,
      const std::vector<std::string>& arguments) const;
  // Returns the number of shards in which a server has a part.
  int PartsOf(size_t server) const;
  // Uses these credentials for new channels. The default is none.
  void SetCredentials(std::shared_ptr<grpc::ChannelCredentials> credentials) {
    credentials_ = std::move(credentials);
  }
  // Returns a new channel to a server, and to each server.
  static std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);
  TrainingConnection::Channels Channels() const;
  // Returns the newest view that any server knows.
  v1::GetViewReply View() const;
  // Returns the server that leads a shard.
  size_t PrimaryOf(int shard) const;
  // Waits until each shard has all its backups. Returns false after `timeout`.
  bool AwaitBackups(absl::Duration timeout = absl::Seconds(30)) const;

  // Returns the log of all processes, for people.
  std::string Logs() const;

 private:
  ReplicatedServers(const Hosts& hosts, std::vector<std::string> addresses,
                    unsigned replicas, unsigned workers,
                    std::vector<std::string> flags);

  const unsigned replicas_;
  const unsigned workers_;
  const std::vector<std::string> flags_;
  const std::string folder_;
  const Hosts hosts_;
  std::unique_ptr<etcd::RealEtcd> etcd_;  // null with Hosts
  std::string etcd_address_;
  std::vector<std::string> addresses_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<process::Child>> servers_;
  std::vector<bool> has_quota_;
  int log_ = -1;
  std::shared_ptr<grpc::ChannelCredentials> credentials_ =
      grpc::InsecureChannelCredentials();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_SERVERS_H_
