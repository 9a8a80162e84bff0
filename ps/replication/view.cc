#include "ps/replication/view.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replication/replica_list.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

Replicas AllOf(const ShardReplicas& shard) {
  Replicas all = {shard.primary};
  all.insert(all.end(), shard.backups.begin(), shard.backups.end());
  all.insert(all.end(), shard.joiners.begin(), shard.joiners.end());
  return all;
}

absl::Status CheckShard(size_t at, const ShardReplicas& shard,
                        std::map<std::string, uint64_t>* incarnations) {
  auto flaw = [at](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", at, ": ", what));
  };
  const size_t replicas = 1 + shard.backups.size() + shard.joiners.size();
  if (replicas > kMaxReplicas) {
    return flaw(absl::StrCat(replicas, " replicas, more than ", kMaxReplicas));
  }
  std::set<ReplicaId> seen;
  for (const ReplicaId& replica : AllOf(shard)) {
    if (replica.server.empty() || replica.server.size() > kMaxServerName) {
      return flaw(absl::StrCat("a server's name has ", replica.server.size(),
                               " bytes; 1 to ", kMaxServerName,
                               " are allowed"));
    }
    if (!std::all_of(replica.server.begin(), replica.server.end(),
                     [](char c) { return c > ' ' && c <= '~'; })) {
      return flaw("a server's name has bytes that are not printable ASCII");
    }
    if (!seen.insert(replica).second) {
      return flaw(absl::StrCat(TextOf(replica), " appears twice"));
    }
    const auto known =
        incarnations->emplace(replica.server, replica.incarnation).first;
    if (known->second != replica.incarnation) {
      return flaw(absl::StrCat("two servers have the name ", replica.server,
                               "; give each its own"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckShardSuccessor(size_t at, const ShardReplicas& before,
                                 const ShardReplicas& after) {
  if (after.primary != before.primary && !Has(before.backups, after.primary)) {
    return absl::FailedPreconditionError(
        absl::StrCat("shard ", at, ": ", TextOf(after.primary),
                     " cannot be the primary, since it was no backup"));
  }
  const Replicas all = AllOf(before);
  for (const ReplicaId& backup : after.backups) {
    if (Has(all, backup)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("shard ", at, ": ", TextOf(backup),
                     " cannot be a backup, since it has not caught up"));
  }
  return absl::OkStatus();
}

absl::Status CheckShardNumber(const View& view, size_t shard) {
  if (shard < view.shards.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no shard ", shard, " of ",
                                                 view.shards.size(),
                                                 " in view ", view.number));
}

absl::Status WrongRole(const View& view, size_t shard, const ReplicaId& replica,
                       absl::string_view wanted) {
  return absl::FailedPreconditionError(
      absl::StrCat("view ", view.number, ", shard ", shard, ": ",
                   TextOf(replica), " is not ", wanted));
}

// Returns `next` with the number after that of `view`, if CheckView() accepts
// it.
absl::StatusOr<View> Next(const View& view, View next) {
  next.number = view.number + 1;
  if (absl::Status wrong = CheckView(next); !wrong.ok()) return wrong;
  return next;
}

}  // namespace

std::string TextOf(const ReplicaId& replica) {
  return absl::StrCat(replica.server, " (incarnation ",
                      absl::Hex(replica.incarnation), ")");
}

bool operator==(const ShardReplicas& a, const ShardReplicas& b) {
  return a.primary == b.primary && a.backups == b.backups &&
         a.joiners == b.joiners;
}

bool operator==(const View& a, const View& b) {
  return a.run == b.run && a.number == b.number && a.shards == b.shards;
}

absl::Status CheckView(const View& view) {
  if (view.number == 0 || view.number > kMaxViewNumber) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the number of the view is ", view.number, "; 1 to 2^48 are allowed"));
  }
  if (view.shards.empty() || view.shards.size() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("the view has ", view.shards.size(), " shards; 1 to ",
                     kMaxShards, " are allowed"));
  }
  std::map<std::string, uint64_t> incarnations;
  for (size_t at = 0; at < view.shards.size(); ++at) {
    absl::Status wrong = CheckShard(at, view.shards[at], &incarnations);
    if (!wrong.ok()) return wrong;
  }
  return absl::OkStatus();
}

absl::Status CheckSuccessor(const View& before, const View& after) {
  if (absl::Status wrong = CheckView(after); !wrong.ok()) return wrong;
  if (after.run != before.run || after.shards.size() != before.shards.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("view ", after.number, " is of another run or model than ",
                     "view ", before.number));
  }
  if (after.number != before.number + 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("view ", after.number, " cannot follow view ",
                     before.number, ": numbers rise by one"));
  }
  for (size_t at = 0; at < after.shards.size(); ++at) {
    absl::Status wrong =
        CheckShardSuccessor(at, before.shards[at], after.shards[at]);
    if (!wrong.ok()) return wrong;
  }
  return absl::OkStatus();
}

absl::StatusOr<View> FirstView(uint64_t run,
                               const std::vector<ReplicaId>& servers,
                               size_t backups) {
  const size_t others = servers.empty() ? 0 : servers.size() - 1;
  if (backups > others) {
    return absl::InvalidArgumentError(
        absl::StrCat(backups, " backups of each shard need ", backups + 1,
                     " servers, and there are ", servers.size(),
                     "; start more servers, or lower --replicas"));
  }
  View view;
  view.run = run;
  view.number = 1;
  for (size_t shard = 0; shard < servers.size(); ++shard) {
    ShardReplicas replicas;
    replicas.primary = servers[shard];
    for (size_t i = 0; i < backups; ++i) {
      // Spreads the joiners, so that each server backs up as many shards as it
      // leads.
      replicas.joiners.push_back(servers[(shard + 1 + i) % servers.size()]);
    }
    view.shards.push_back(std::move(replicas));
  }
  if (absl::Status wrong = CheckView(view); !wrong.ok()) return wrong;
  return view;
}

absl::StatusOr<View> WithoutReplica(const View& view,
                                    const ReplicaId& replica) {
  View next = view;
  bool was_there = false;
  for (size_t at = 0; at < next.shards.size(); ++at) {
    ShardReplicas& shard = next.shards[at];
    was_there |= Remove(replica, &shard.backups);
    was_there |= Remove(replica, &shard.joiners);
    if (shard.primary != replica) continue;
    was_there = true;
    if (shard.backups.empty()) {
      return absl::DataLossError(
          absl::StrCat("shard ", at, " has no backup that could follow ",
                       TextOf(replica), "; restore a checkpoint"));
    }
    shard.primary = shard.backups.front();
    shard.backups.erase(shard.backups.begin());
  }
  if (!was_there) {
    return absl::FailedPreconditionError(
        absl::StrCat(TextOf(replica), " is no replica in view ", view.number));
  }
  return Next(view, std::move(next));
}

absl::StatusOr<View> WithJoiner(const View& view, size_t shard,
                                const ReplicaId& replica) {
  if (absl::Status wrong = CheckShardNumber(view, shard); !wrong.ok()) {
    return wrong;
  }
  if (Has(AllOf(view.shards[shard]), replica)) {
    return WrongRole(view, shard, replica, "new");
  }
  View next = view;
  next.shards[shard].joiners.push_back(replica);
  return Next(view, std::move(next));
}

absl::StatusOr<View> WithBackup(const View& view, size_t shard,
                                const ReplicaId& replica) {
  if (absl::Status wrong = CheckShardNumber(view, shard); !wrong.ok()) {
    return wrong;
  }
  View next = view;
  if (!Remove(replica, &next.shards[shard].joiners)) {
    return WrongRole(view, shard, replica, "a joiner");
  }
  next.shards[shard].backups.push_back(replica);
  return Next(view, std::move(next));
}

absl::StatusOr<View> WithPrimary(const View& view, size_t shard,
                                 const ReplicaId& replica) {
  if (absl::Status wrong = CheckShardNumber(view, shard); !wrong.ok()) {
    return wrong;
  }
  View next = view;
  ShardReplicas& replicas = next.shards[shard];
  if (!Remove(replica, &replicas.backups)) {
    return WrongRole(view, shard, replica, "a backup");
  }
  replicas.backups.push_back(replicas.primary);
  replicas.primary = replica;
  return Next(view, std::move(next));
}

}  // namespace penstock::ps::replication
