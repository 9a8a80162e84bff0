// Small functions on lists of replicas.

#ifndef PENSTOCK_PS_REPLICATION_REPLICA_LIST_H_
#define PENSTOCK_PS_REPLICATION_REPLICA_LIST_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ps/replication/view.h"

namespace penstock::ps::replication {

inline bool Has(const std::vector<ReplicaId>& replicas,
                const ReplicaId& replica) {
  return std::find(replicas.begin(), replicas.end(), replica) != replicas.end();
}

// Removes `replica` from the list. Returns true if the list had it.
inline bool Remove(const ReplicaId& replica, std::vector<ReplicaId>* replicas) {
  const auto end = std::remove(replicas->begin(), replicas->end(), replica);
  const bool was_there = end != replicas->end();
  replicas->erase(end, replicas->end());
  return was_there;
}

// Returns true if `replica` has any role in the shard.
inline bool IsInShard(const ShardReplicas& shard, const ReplicaId& replica) {
  return shard.primary == replica || Has(shard.backups, replica) ||
         Has(shard.joiners, replica);
}

// Returns the number of shards in which `replica` has a role.
inline size_t PartsOf(const View& view, const ReplicaId& replica) {
  return static_cast<size_t>(std::count_if(
      view.shards.begin(), view.shards.end(),
      [&](const ShardReplicas& shard) { return IsInShard(shard, replica); }));
}

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_REPLICA_LIST_H_
