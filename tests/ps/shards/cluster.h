// Servers with replicas in this process, over stock gRPC, and a thread that
// makes their views.

#ifndef PENSTOCK_TESTS_PS_SHARDS_CLUSTER_H_
#define PENSTOCK_TESTS_PS_SHARDS_CLUSTER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server.h"
#include "ps/checkpoint/files.h"
#include "ps/model/model.h"
#include "ps/replication/view.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "ps/shards/peers.h"
#include "ps/shards/shards.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

inline constexpr uint64_t kRun = 7;
inline constexpr View kView = {kRun, 1};

// The addresses of the servers, by name. A server without an address cannot be
// reached.
class Addresses {
 public:
  void Set(const std::string& name, std::shared_ptr<grpc::Channel> channel);
  void Remove(const std::string& name);
  std::shared_ptr<grpc::Channel> Find(const std::string& name) const;

 private:
  mutable absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_
      ABSL_GUARDED_BY(mu_);
};

// The messages to peers, which a test can cut off.
class CutPeers final : public Peers {
 public:
  explicit CutPeers(std::unique_ptr<Peers> peers) : peers_(std::move(peers)) {}
  void Replicate(const std::string& server, const grpc::ByteBuffer& request,
                 absl::Duration timeout, Callback callback) override;
  void Stop() override { peers_->Stop(); }
  void Cut(bool is_cut) { is_cut_ = is_cut; }

 private:
  const std::unique_ptr<Peers> peers_;
  std::atomic<bool> is_cut_{false};
};

// One process.
class Node {
 public:
  struct Options {
    uint32_t workers = 1;
    size_t max_held_bytes = size_t{4} << 30;
    // The folder of checkpoints; null: none. Outlives the node.
    checkpoint::Files* checkpoints = nullptr;
  };
  Node(const std::string& name, uint64_t incarnation, const Options& options,
       Addresses* addresses);
  // Ends the node like a killed process: it sends no further messages.
  ~Node();

  Server& own() { return own_; }
  Shards& shards() { return *shards_; }
  CutPeers& peers() { return *peers_; }
  const replication::ReplicaId& id() const { return id_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }

 private:
  const replication::ReplicaId id_;
  Addresses* const addresses_;
  Server own_;
  std::unique_ptr<CheckpointWriter> claim_;  // null without a folder
  std::unique_ptr<CutPeers> peers_;
  std::unique_ptr<Shards> shards_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// A cluster of `servers` nodes. The first `shards` nodes have a shard each. A
// thread makes the views: it adds joiners that ask for it, and drops overdue
// replicas.
class Cluster {
 public:
  struct Options {
    size_t servers = 3;
    size_t shards = 1;
    size_t backups = 1;
    uint32_t workers = 1;
    // The folder of checkpoints; null: none. Outlives the cluster.
    checkpoint::Files* checkpoints = nullptr;
    size_t max_held_bytes = size_t{4} << 30;
  };
  // Defines the model, and sets zeros as first values of dense tables.
  Cluster(const Options& options, Model model);
  ~Cluster();

  // Kills the primary of a shard once it has a backup. The backup becomes the
  // primary, and a new node may join.
  void KillPrimary(uint32_t shard);
  // Blocks until each shard has its backups.
  void AwaitBackups();
  // Stops sending views to a node, or continues.
  void Isolate(const std::string& name, bool is_isolated);
  // Treats an isolated server as dead.
  void GiveUp(const std::string& name);

  replication::View view() const;
  std::shared_ptr<Node> node(const std::string& name) const;
  std::shared_ptr<Node> PrimaryOf(uint32_t shard) const;
  // Call the primary of the shard. Repeat the call until the primary is ready.
  absl::StatusOr<uint64_t> Join(uint32_t shard, const WorkerId& worker);
  absl::StatusOr<Exchange::PushVerdict> Push(uint32_t shard,
                                             const WorkerId& worker,
                                             uint64_t clock,
                                             const tensor::Bundle& bundle);
  absl::StatusOr<Exchange::Pulled> Pull(uint32_t shard,
                                        absl::optional<WorkerId> worker,
                                        uint64_t clock,
                                        tensor::Bundle ids = {});

 private:
  std::shared_ptr<Node> Add(const std::string& name);
  // Removes the primary of a shard from the nodes and returns it. Returns null
  // if it has no backup.
  std::shared_ptr<Node> TakePrimary(uint32_t shard);
  void KeepLoop();
  void KeepOnce();
  void Next(absl::StatusOr<replication::View> next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::shared_ptr<Node>> nodes() const;

  const Options options_;
  Addresses addresses_;
  uint64_t next_incarnation_ = 1;
  mutable absl::Mutex mu_;
  replication::View view_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<Node>> nodes_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> isolated_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread keeper_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SHARDS_CLUSTER_H_
