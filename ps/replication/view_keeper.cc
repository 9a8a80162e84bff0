#include "ps/replication/view_keeper.h"

#include <algorithm>
#include <iterator>

#include "ps/replication/replica_list.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

// Returns true if the replica's server is alive in another incarnation, because
// it was restarted.
bool IsDead(const ViewKeeper::Knowledge& known, const ReplicaId& replica) {
  if (Has(known.live, replica)) return false;
  return known.sees_deaths || std::any_of(known.live.begin(), known.live.end(),
                                          [&](const ReplicaId& id) {
                                            return id.server == replica.server;
                                          });
}

// Returns true if the view has another incarnation of the replica's server.
// CheckView() permits only one.
bool HasOtherIncarnation(const View& view, const ReplicaId& replica) {
  const auto is_other = [&](const ReplicaId& id) {
    return id.server == replica.server && id != replica;
  };
  return std::any_of(view.shards.begin(), view.shards.end(),
                     [&](const ShardReplicas& shard) {
                       return is_other(shard.primary) ||
                              std::any_of(shard.backups.begin(),
                                          shard.backups.end(), is_other) ||
                              std::any_of(shard.joiners.begin(),
                                          shard.joiners.end(), is_other);
                     });
}

bool ComplainsOf(const ViewFollower::Request& request,
                 const ReplicaId& replica) {
  return std::any_of(request.overdue.begin(), request.overdue.end(),
                     [&](const Primary::Complaint& complaint) {
                       return complaint.replica == replica;
                     });
}

}  // namespace

absl::optional<View> ViewKeeper::First(const Knowledge& known) const {
  const bool is_server_0 =
      known.are_all_live && known.live.front() == options_.self;
  if (!is_server_0 || !known.run) return absl::nullopt;
  const bool one_leaves = std::any_of(
      known.live.begin(), known.live.end(),
      [&](const ReplicaId& id) { return Has(known.moves.leaving, id); });
  if (one_leaves) return absl::nullopt;
  auto first = FirstView(*known.run, known.live, options_.backups);
  if (!first.ok()) return absl::nullopt;
  if (known.view) first->number = known.view->number + 1;
  return *std::move(first);
}

void ViewKeeper::DropDead(const Knowledge& known, ShardReplicas* shard) const {
  const auto is_dead = [&](const ReplicaId& id) { return IsDead(known, id); };
  const auto drop = [&](Replicas* replicas) {
    replicas->erase(std::remove_if(replicas->begin(), replicas->end(), is_dead),
                    replicas->end());
  };
  drop(&shard->joiners);
  const bool is_lost =
      is_dead(shard->primary) &&
      std::all_of(shard->backups.begin(), shard->backups.end(), is_dead);
  // Does nothing if the shard is lost, because a backup that only seemed dead
  // may return and become the primary.
  if (is_lost) return;
  drop(&shard->backups);
  if (!is_dead(shard->primary)) return;
  shard->primary = shard->backups.front();
  shard->backups.erase(shard->backups.begin());
}

// Drops nobody else in the same view. Otherwise, the shard would be lost if the
// new primary had just died and the only live backup were dropped as slow.
void ViewKeeper::Depose(const Knowledge& known,
                        const ViewFollower::Request& request,
                        ShardReplicas* shard, absl::Time now) {
  const auto lives = [&](const ReplicaId& id) { return Has(known.live, id); };
  const auto is_best = [&](const ReplicaId& id) {
    return lives(id) && !ComplainsOf(request, id);
  };
  Replicas& backups = shard->backups;
  auto heir = std::find_if(backups.begin(), backups.end(), is_best);
  if (heir == backups.end()) {
    heir = std::find_if(backups.begin(), backups.end(), lives);
  }
  if (heir == backups.end()) return;
  may_rejoin_[{request.shard, shard->primary}] = now + options_.rejoin_after;
  shard->primary = *heir;
  backups.erase(heir);
}

void ViewKeeper::Grant(const Knowledge& known,
                       const ViewFollower::Request& request,
                       ShardReplicas* shard, absl::Time now) {
  if (ComplainsOf(request, shard->primary)) {
    Depose(known, request, shard, now);
  } else {
    for (const Primary::Complaint& complaint : request.overdue) {
      Remove(complaint.replica, &shard->backups);
      Remove(complaint.replica, &shard->joiners);
      may_rejoin_[{request.shard, complaint.replica}] =
          now + options_.rejoin_after;
    }
  }
  for (const ReplicaId& complete : request.complete) {
    if (!Has(shard->joiners, complete)) continue;
    Remove(complete, &shard->joiners);
    shard->backups.push_back(complete);
  }
}

// Chooses the server with the fewest replicas. Among equals, chooses the next
// one after the shard's own server.
void ViewKeeper::AddJoiner(const Knowledge& known, uint32_t shard,
                           View* next) const {
  ShardReplicas& replicas = next->shards[shard];
  if (replicas.backups.size() + replicas.joiners.size() >= options_.backups) {
    return;
  }
  const ReplicaId* best = nullptr;
  for (size_t i = 0; i < known.live.size(); ++i) {
    const ReplicaId& server = known.live[(shard + 1 + i) % known.live.size()];
    if (IsInShard(replicas, server) || HasOtherIncarnation(*next, server) ||
        Has(known.moves.leaving, server) ||
        may_rejoin_.count({shard, server}) > 0) {
      continue;
    }
    if (best == nullptr || PartsOf(*next, server) < PartsOf(*next, *best)) {
      best = &server;
    }
  }
  if (best != nullptr) replicas.joiners.push_back(*best);
}

void ViewKeeper::DropLeavingJoiners(const Knowledge& known, View* next) const {
  for (ShardReplicas& shard : next->shards) {
    if (shard.primary != options_.self) continue;
    for (const ReplicaId& leaves : known.moves.leaving) {
      Remove(leaves, &shard.joiners);
    }
  }
}

// Does nothing while another change is in progress, because shards move one
// after another.
void ViewKeeper::MoveOn(const Knowledge& known, View* next) const {
  for (const ShardReplicas& shard : next->shards) {
    const bool rests =
        shard.joiners.empty() && Has(known.live, shard.primary) &&
        std::all_of(shard.backups.begin(), shard.backups.end(),
                    [&](const ReplicaId& id) { return Has(known.live, id); });
    if (!rests) return;
  }
  const auto move =
      NextMove(*next, known.live, known.moves, options_.backups + 1);
  if (!move || next->shards[move->shard].primary != options_.self) return;
  const auto must_wait = [&](const ReplicaId& joiner) {
    return may_rejoin_.count({move->shard, joiner}) > 0;
  };
  // Requires that the primary has begun. Otherwise it would wait for a lease of
  // a predecessor that has left the view.
  const bool has_begun =
      std::any_of(known.requests.begin(), known.requests.end(),
                  [&](const ViewFollower::Request& request) {
                    return request.shard == move->shard && request.has_begun &&
                           request.view == known.view->number;
                  });
  if (!has_begun) return;
  const Replicas& joiners = move->after.joiners;
  if (std::any_of(joiners.begin(), joiners.end(), must_wait)) return;
  next->shards[move->shard] = move->after;
}

absl::optional<View> ViewKeeper::Next(const Knowledge& known, absl::Time now) {
  // Returns nullopt if this process is missing in the list: it was cut off, and
  // knows too little.
  if (!Has(known.live, options_.self)) return absl::nullopt;
  if (!known.view || (known.run && *known.run != known.view->run)) {
    return First(known);
  }
  for (auto it = may_rejoin_.begin(); it != may_rejoin_.end();) {
    it = it->second <= now ? may_rejoin_.erase(it) : std::next(it);
  }
  const View& view = *known.view;
  View next = view;
  for (ShardReplicas& shard : next.shards) DropDead(known, &shard);
  for (const ViewFollower::Request& request : known.requests) {
    const bool is_current = request.view == view.number &&
                            request.shard < view.shards.size() &&
                            view.shards[request.shard].primary == options_.self;
    if (is_current) Grant(known, request, &next.shards[request.shard], now);
  }
  DropLeavingJoiners(known, &next);
  for (uint32_t shard = 0; shard < next.shards.size(); ++shard) {
    if (next.shards[shard].primary != options_.self) continue;
    AddJoiner(known, shard, &next);
  }
  if (next == view) MoveOn(known, &next);
  if (next == view) return absl::nullopt;
  ++next.number;
  if (!CheckSuccessor(view, next).ok()) return absl::nullopt;
  return next;
}

std::vector<std::pair<size_t, ReplicaId>> LostShards(
    const ViewKeeper::Knowledge& known) {
  std::vector<std::pair<size_t, ReplicaId>> lost;
  if (!known.view) return lost;
  for (size_t i = 0; i < known.view->shards.size(); ++i) {
    const ShardReplicas& shard = known.view->shards[i];
    const bool is_lost =
        IsDead(known, shard.primary) &&
        std::all_of(shard.backups.begin(), shard.backups.end(),
                    [&](const ReplicaId& id) { return IsDead(known, id); });
    if (is_lost) lost.emplace_back(i, shard.primary);
  }
  return lost;
}

}  // namespace penstock::ps::replication
