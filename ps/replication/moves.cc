#include "ps/replication/moves.h"

#include <algorithm>
#include <utility>

#include "ps/replication/replica_list.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

// The replicas that a shard should have.
struct Goal {
  Replicas members;
  ReplicaId primary;
};

size_t LedBy(const View& view, const ReplicaId& replica) {
  return static_cast<size_t>(std::count_if(
      view.shards.begin(), view.shards.end(),
      [&](const ShardReplicas& shard) { return shard.primary == replica; }));
}

Replicas MembersOf(const ShardReplicas& shard) {
  Replicas members = {shard.primary};
  members.insert(members.end(), shard.backups.begin(), shard.backups.end());
  return members;
}

// Returns the live servers that may have replicas: the shard's own server
// first, if it may, then the others in the order of the shards.
Replicas UsableFor(size_t shard, const Replicas& live,
                   const MoveRequests& requests) {
  Replicas usable;
  const auto& own = requests.own_servers;
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string& address = own[(shard + i) % own.size()];
    const auto found =
        std::find_if(live.begin(), live.end(),
                     [&](const ReplicaId& id) { return id.server == address; });
    if (found == live.end() || Has(requests.leaving, *found)) continue;
    usable.push_back(*found);
  }
  return usable;
}

// Returns a goal in which the shard's own server leads, and the next servers
// are backups.
Goal GoalAtOwnServer(Replicas usable, size_t copies) {
  const ReplicaId own = usable.front();
  usable.resize(std::min(usable.size(), copies));
  return {std::move(usable), own};
}

// Returns a goal that keeps the members that need not leave, and adds the
// servers with the fewest replicas.
Goal GoalWithoutLeaving(const View& view, const ShardReplicas& now,
                        Replicas usable, const Replicas& leaving,
                        size_t copies) {
  Goal goal;
  for (const ReplicaId& member : MembersOf(now)) {
    if (goal.members.size() == copies) break;
    if (!Has(leaving, member)) goal.members.push_back(member);
  }
  const Replicas stay = goal.members;
  std::stable_sort(usable.begin(), usable.end(),
                   [&](const ReplicaId& a, const ReplicaId& b) {
                     return PartsOf(view, a) < PartsOf(view, b);
                   });
  for (const ReplicaId& server : usable) {
    if (goal.members.size() >= copies) break;
    if (!Has(goal.members, server)) goal.members.push_back(server);
  }
  goal.primary = now.primary;
  if (!stay.empty() && !Has(stay, now.primary)) {
    goal.primary = *std::min_element(
        stay.begin(), stay.end(), [&](const ReplicaId& a, const ReplicaId& b) {
          return LedBy(view, a) < LedBy(view, b);
        });
  }
  return goal;
}

absl::optional<ShardReplicas> StepTo(const Goal& goal, size_t copies,
                                     ShardReplicas shard) {
  for (const ReplicaId& member : goal.members) {
    if (IsInShard(shard, member)) continue;
    shard.joiners.push_back(member);
    return shard;
  }
  if (goal.primary != shard.primary && Remove(goal.primary, &shard.backups)) {
    shard.backups.push_back(std::exchange(shard.primary, goal.primary));
    return shard;
  }
  if (1 + shard.backups.size() <= copies) return absl::nullopt;
  for (const ReplicaId& backup : shard.backups) {
    if (Has(goal.members, backup)) continue;
    const ReplicaId leaves = backup;
    Remove(leaves, &shard.backups);
    return shard;
  }
  return absl::nullopt;
}

}  // namespace

absl::optional<Move> NextMove(const View& view, const Replicas& live,
                              const MoveRequests& requests, size_t copies) {
  for (uint32_t i = 0; i < view.shards.size(); ++i) {
    const ShardReplicas& now = view.shards[i];
    Replicas usable = UsableFor(i, live, requests);
    const bool goes_home = requests.to_own_servers && !usable.empty() &&
                           i < requests.own_servers.size() &&
                           usable.front().server == requests.own_servers[i];
    const Goal goal = goes_home
                          ? GoalAtOwnServer(std::move(usable), copies)
                          : GoalWithoutLeaving(view, now, std::move(usable),
                                               requests.leaving, copies);
    auto after = StepTo(goal, copies, now);
    if (after) return Move{i, *std::move(after)};
  }
  return absl::nullopt;
}

}  // namespace penstock::ps::replication
