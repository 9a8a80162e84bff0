// Views: which process is the primary of each shard, and which are its backups.

#ifndef PENSTOCK_PS_REPLICATION_VIEW_H_
#define PENSTOCK_PS_REPLICATION_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::replication {

// One run of one server. A restarted server has lost its memory. The server
// keeps its name, and draws a new random incarnation.
struct ReplicaId {
  std::string server;  // an address, or a name that the cluster knows
  uint64_t incarnation = 0;
};

inline bool operator==(const ReplicaId& a, const ReplicaId& b) {
  return a.incarnation == b.incarnation && a.server == b.server;
}
inline bool operator!=(const ReplicaId& a, const ReplicaId& b) {
  return !(a == b);
}
inline bool operator<(const ReplicaId& a, const ReplicaId& b) {
  return std::tie(a.server, a.incarnation) < std::tie(b.server, b.incarnation);
}

// Returns a text for messages: "ps1:2222 (incarnation 1f2e)".
std::string TextOf(const ReplicaId& replica);

// The replicas of one shard.
//
//   primary   accepts pushes and answers pulls
//   backups   hold each acknowledged push. Each may become the primary.
//   joiners   catch up. None may become the primary.
struct ShardReplicas {
  ReplicaId primary;
  std::vector<ReplicaId> backups;
  std::vector<ReplicaId> joiners;
};

bool operator==(const ShardReplicas& a, const ShardReplicas& b);

// A numbered decision about all shards of a run. Shard i is the share of server
// i in a PlacementMap. The PlacementMap stays the same when another server
// takes over a shard.
//
// One owner makes each view from the previous view, by compare-and-swap on the
// number. The owner drops a dead replica, and a replica that the primary
// complains about (Primary::Overdue()). The functions below make the next view.
struct View {
  uint64_t run = 0;
  uint64_t number = 0;  // from 1 on
  std::vector<ShardReplicas> shards;
};

bool operator==(const View& a, const View& b);

// Limit what a view from another process may contain. At most as many shards as
// a PlacementMap has servers.
inline constexpr size_t kMaxShards = 4096;
inline constexpr size_t kMaxReplicas = 16;  // of one shard
inline constexpr size_t kMaxServerName = 512;
inline constexpr uint64_t kMaxViewNumber = uint64_t{1} << 48;

// Checks a view that another process has made. Returns INVALID_ARGUMENT, which
// names the shard and the replica, unless
//
// - all limits hold,
// - each name has 1 to kMaxServerName bytes of printable ASCII,
// - each replica occurs once in a shard, and
// - each server has one incarnation.
absl::Status CheckView(const View& view);

// Checks that `after` may follow `before`. Returns FAILED_PRECONDITION, which
// names the shard, unless
//
// - both are of one run and have as many shards,
// - `after` has the next number, and
// - each primary was primary or backup of its shard, and each backup was
//   primary, backup or joiner of its shard.
//
// Only the primary knows if a joiner has caught up. The owner makes a joiner a
// backup only if Primary::Complete() names the joiner for the view `before`.
absl::Status CheckSuccessor(const View& before, const View& after);

// Makes view 1. `servers` are the primaries, in the order of the shards. Each
// shard gets `backups` joiners, spread over the other servers. Returns
// INVALID_ARGUMENT if there are fewer than `backups` other servers.
absl::StatusOr<View> FirstView(uint64_t run,
                               const std::vector<ReplicaId>& servers,
                               size_t backups);

// Return the view that follows `view`, with one change of the role of `replica`
// in a shard: none any more (WithoutReplica, for all shards), joiner
// (WithJoiner), backup (WithBackup), or primary (WithPrimary). Return
// FAILED_PRECONDITION if the replica's present role does not permit the change,
// and INVALID_ARGUMENT for an unknown shard.
//
// WithoutReplica() makes the first backup the primary of each shard that the
// replica led. Returns DATA_LOSS, which names the shard, if the shard has no
// backup: only a checkpoint can restore it.
absl::StatusOr<View> WithoutReplica(const View& view, const ReplicaId& replica);
absl::StatusOr<View> WithJoiner(const View& view, size_t shard,
                                const ReplicaId& replica);
absl::StatusOr<View> WithBackup(const View& view, size_t shard,
                                const ReplicaId& replica);
// The former primary becomes a backup.
absl::StatusOr<View> WithPrimary(const View& view, size_t shard,
                                 const ReplicaId& replica);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_VIEW_H_
