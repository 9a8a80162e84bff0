// Brings a replicated shard to the cut of a checkpoint.

#ifndef PENSTOCK_PS_SHARDS_SHARD_CUTS_H_
#define PENSTOCK_PS_SHARDS_SHARD_CUTS_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/cut.h"
#include "ps/server/cancellation.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/server.h"
#include "ps/shards/replica_state.h"

namespace penstock::ps {

// The snapshots of a shard at cuts, at its primary. A cut is a position in the
// log, reached in these steps:
//
//   1. HoldSteps() stops new pushes in front of the log, and waits until the
//      Server has applied the log. The answer has the clocks of all pushes that
//      any replica has begun to apply, however slow the replica.
//   2. TakeSnapshot() lets pushes before the cut into the log, until the Server
//      has all of them.
//   3. An entry closes the cut at all replicas.
//   4. The Server takes the snapshot. Then the other pushes continue.
//
// A push that waits in front of the log is answered only after step 4. If
// another replica becomes the primary during these steps, HoldSteps() and
// TakeSnapshot() fail with UNAVAILABLE, and the checkpoint begins again at the
// new primary.
//
// Thread-safe. Calls block.
class ShardCuts {
 public:
  explicit ShardCuts(std::shared_ptr<ReplicaState> state);

  // Do the same as Server::HoldSteps(), Server::ReleaseSteps() and
  // Server::TakeSnapshot(). `cancellation`, which may be null, ends the wait.
  absl::StatusOr<HeldSteps> HoldSteps(const View& view);
  void ReleaseSteps();
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      const View& view, const CutPoint& cut,
      const SparseSnapshotOptions& options, absl::Duration timeout,
      Cancellation* cancellation);

 private:
  // A hold of the gate, valid while this replica stays the primary.
  struct Hold {
    std::shared_ptr<Server> server;
    std::shared_ptr<Exchange> exchange;
    uint64_t reign = 0;
    uint64_t number = 0;  // the number of the hold at the gate
    uint64_t logged = 0;  // the last entry before the hold
    absl::Time deadline;
    Cancellation* cancellation = nullptr;
  };

  // Begins a hold of all pushes or, with `cut`, of the pushes after the cut.
  absl::StatusOr<Hold> Begin(const View& view, const CutPoint* cut,
                             absl::Time deadline);
  static absl::Status CheckCut(const Hold& hold, const CutPoint& cut);
  void End(const Hold& hold);
  absl::Status CheckLocked(const Hold& hold)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // AwaitFed() blocks until entry `seq` was fed. AwaitCut() blocks until the
  // server is at `cut`. Both return an error once the awaited state can no
  // longer be reached.
  absl::Status AwaitFed(const Hold& hold, uint64_t seq);
  absl::Status AwaitCut(const Hold& hold, const CutPoint& cut);
  // Logs an entry that closes the cut, and blocks until it was fed.
  absl::Status Close(const Hold& hold, const CutPoint& cut);

  const std::shared_ptr<ReplicaState> state_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SHARD_CUTS_H_
