// The owner of the views in a simulated cluster.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_OWNER_H_
#define PENSTOCK_TESTS_PS_REPLICATION_OWNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ps/replication/view.h"
#include "tests/ps/replication/world.h"

namespace penstock::ps::replication {

// Makes one view after another. Reasons are dead or returned servers, proposals
// and complaints of primaries, and chance.
class Owner {
 public:
  struct Hooks {
    // Returns the live servers.
    std::function<std::vector<ReplicaId>()> servers;
    std::function<void(const std::shared_ptr<const View>&)> announce;
  };

  Owner(World* world, Hooks hooks, std::vector<ReplicaId> servers,
        size_t backups);

  // Makes the next view if its time has come. Also announces the current view
  // from time to time.
  void Act();
  void OnProposal(uint64_t view, const ReplicaId& joiner);
  void OnComplaint(uint64_t view, const ReplicaId& replica);

  const std::shared_ptr<const View>& view() const { return view_; }
  const ShardReplicas& shard() const { return view_->shards[0]; }
  // Returns true if a primary or backup remains without `replica`.
  bool CanSpare(const ReplicaId& replica) const;
  // Returns true if each shard has the wanted number of backups, or as many as
  // the servers permit.
  bool IsFull() const;

 private:
  bool IsLive(const ReplicaId& replica) const;
  void Drop(const ReplicaId& replica);
  void DropDead();
  void AddJoiner();
  void Meddle();
  void Move(const absl::StatusOr<View>& next);

  World* const world_;
  const Hooks hooks_;
  const size_t backups_;
  const uint64_t meddling_;  // percent
  std::shared_ptr<const View> view_;
  absl::Time away_until_ = absl::InfinitePast();
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_OWNER_H_
