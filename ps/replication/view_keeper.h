// Decides on the next view.

#ifndef PENSTOCK_PS_REPLICATION_VIEW_KEEPER_H_
#define PENSTOCK_PS_REPLICATION_VIEW_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/replication/moves.h"
#include "ps/replication/view.h"
#include "ps/replication/view_follower.h"

namespace penstock::ps::replication {

// One process's share in choosing the views of a training. Each process has a
// keeper, and each keeper may propose the next view. A store accepts one
// proposal for each number, so there is never more than one view of a number.
//
//   situation                                 proposed by  the next view
//   ----------------------------------------  -----------  ------------------
//   no view, or one of an earlier run; all    server 0     FirstView()
//   servers live, none of them leaves, and
//   server 0 has values
//   a backup or joiner is dead                anybody      is without it
//   a primary is dead, a backup lives         anybody      has that primary
//   a primary is dead, and all backups        nobody       the shard is lost
//   the primary says that a joiner has all    the primary  has that backup
//   the primary has failed itself, and a      the primary  has that primary
//   backup lives                                           and drops nobody
//   else the primary complains of a replica        the primary  is without it
//   a shard has too few copies, and a server  the primary  has one more joiner
//   lives that has none
//   none of these, and people want shards     the primary  is one step nearer:
//   to move                                                NextMove()
//
// A replica that was dropped after a complaint of its primary joins the shard
// again after `rejoin_after`.
//
// Pure: no clock, no thread, no I/O. Not thread-safe.
class ViewKeeper {
 public:
  struct Options {
    ReplicaId self;
    size_t backups = 1;  // wanted for each shard
    absl::Duration rejoin_after = absl::Seconds(10);
  };

  // The facts that a process knows at one moment.
  struct Knowledge {
    absl::optional<View> view;  // the newest one
    // The servers that are alive, in the order of the shards.
    std::vector<ReplicaId> live;
    bool are_all_live = false;  // no server of the training is missing
    // True if every replica that is not in `live` is dead. False if `live` may
    // be incomplete, because the store was unreachable. Then a replica counts
    // as dead only if `live` has another incarnation of its server.
    bool sees_deaths = false;
    absl::optional<uint64_t> run;  // of this process: ViewFollower::run()
    std::vector<ViewFollower::Request> requests;
    MoveRequests moves;
  };

  explicit ViewKeeper(const Options& options) : options_(options) {}

  // Returns the next view, or nullopt if no change is needed. The next view
  // passes CheckSuccessor(), unless it is the first view of a run.
  absl::optional<View> Next(const Knowledge& known, absl::Time now);

 private:
  using Place = std::pair<uint32_t, ReplicaId>;  // of a shard

  absl::optional<View> First(const Knowledge& known) const;
  void DropDead(const Knowledge& known, ShardReplicas* shard) const;
  // Makes a live backup the primary of a shard whose primary complains of
  // itself. Prefers a backup without a complaint. Changes nothing if no backup
  // lives.
  void Depose(const Knowledge& known, const ViewFollower::Request& request,
              ShardReplicas* shard, absl::Time now);
  void Grant(const Knowledge& known, const ViewFollower::Request& request,
             ShardReplicas* shard, absl::Time now);
  void AddJoiner(const Knowledge& known, uint32_t shard, View* next) const;
  void DropLeavingJoiners(const Knowledge& known, View* next) const;
  void MoveOn(const Knowledge& known, View* next) const;

  const Options options_;
  std::map<Place, absl::Time> may_rejoin_;
};

// Returns the shards whose primary and backups are all dead, each with its
// primary. Only a checkpoint can restore them.
std::vector<std::pair<size_t, ReplicaId>> LostShards(
    const ViewKeeper::Knowledge& known);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_VIEW_KEEPER_H_
