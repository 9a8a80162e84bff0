// Decides which replica moves next, on request of the operators.

#ifndef PENSTOCK_PS_REPLICATION_MOVES_H_
#define PENSTOCK_PS_REPLICATION_MOVES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// Requests of operators.
struct MoveRequests {
  // Servers that should hold nothing.
  std::vector<ReplicaId> leaving;
  // True if shards should return to their own servers.
  bool to_own_servers = false;
  // The address of each shard's own server.
  std::vector<std::string> own_servers;
};

// One change: the next view of one shard.
struct Move {
  uint32_t shard = 0;
  ShardReplicas after;
};

// Returns the next move. Returns nullopt if the view is as requested, or as
// close to the request as the live servers permit. Shards move one after
// another. Each move has these steps:
//
//   1. A server that should have a replica joins. Wait until it is a backup.
//   2. The backup that should lead becomes the primary. The former primary
//      becomes a backup, so nobody waits for a lease to end.
//   3. A backup leaves a server that should hold no replica.
//
// A shard has at least `copies` replicas before step 3 and after it. If too few
// other servers live, a shard keeps its replica on a leaving server.
//
// Requires a view without joiners, whose replicas all live: `live` contains
// them. Processes with equal arguments get the same move.
absl::optional<Move> NextMove(const View& view,
                              const std::vector<ReplicaId>& live,
                              const MoveRequests& requests, size_t copies);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_MOVES_H_
