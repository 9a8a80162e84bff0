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

// The part of one process in choosing the views of a training. Each process has
// a keeper, and each keeper may propose the next view. A store accepts one
// proposal for each number, so that two different views of one number are never
// in force.
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
// A replica that its primary has complained of joins that shard again after
// `rejoin_after`.
//
// Pure: no clock, no thread, no I/O. Not thread-safe.
class ViewKeeper {
 public:
  struct Options {
    ReplicaId self;
    size_t backups = 1;  // wanted for each shard
    absl::Duration rejoin_after = absl::Seconds(10);
  };

  // The knowledge of a process at one moment.
  struct Knowledge {
    absl::optional<View> view;  // the newest one
    // The servers that live, in the order of the shards.
    std::vector<ReplicaId> live;
    bool are_all_live = false;  // no server of the training is missing
    // True if a replica that is not in `live` is dead. False while `live` may
    // lack servers because the store was away; then only those replicas are
    // dead whose server lives in another incarnation.
    bool sees_deaths = false;
    absl::optional<uint64_t> run;  // of this process: ViewFollower::run()
    std::vector<ViewFollower::Wish> wishes;
    MoveWishes moves;
  };

  explicit ViewKeeper(const Options& options) : options_(options) {}

  // Returns the view that should follow `known.view`, or nullopt if no change
  // is needed. The view passes CheckSuccessor(), unless it is the first view of
  // a run.
  absl::optional<View> Next(const Knowledge& known, absl::Time now);

 private:
  using Place = std::pair<uint32_t, ReplicaId>;  // of a shard

  absl::optional<View> First(const Knowledge& known) const;
  void DropDead(const Knowledge& known, ShardReplicas* shard) const;
  // Makes a live backup the primary of a shard whose primary complains of
  // itself. Prefers a backup without a complaint. Returns false if no backup
  // lives.
  bool Depose(const Knowledge& known, const ViewFollower::Wish& wish,
              ShardReplicas* shard) const;
  void Grant(const Knowledge& known, const ViewFollower::Wish& wish,
             ShardReplicas* shard, absl::Time now);
  void AddJoiner(const Knowledge& known, uint32_t shard, View* next) const;
  void DropLeavingJoiners(const Knowledge& known, View* next) const;
  void MoveOn(const Knowledge& known, View* next) const;

  const Options options_;
  std::map<Place, absl::Time> may_rejoin_;
};

// Returns the shards whose primary and backups are all dead, with the primary.
// Only a checkpoint helps.
std::vector<std::pair<size_t, ReplicaId>> LostShards(
    const ViewKeeper::Knowledge& known);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_VIEW_KEEPER_H_
