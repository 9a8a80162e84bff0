// A queue of snapshots of a server; each waits for its cut.

#ifndef PENSTOCK_PS_SERVER_CUT_SNAPSHOTS_H_
#define PENSTOCK_PS_SERVER_CUT_SNAPSHOTS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/cut.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/steps.h"

namespace penstock::ps {

// Returns a text that describes a cut, for errors.
std::string Describe(const CutPoint& cut);

// Runs callbacks that could not run under a lock. Call without the lock.
inline void RunAll(const std::vector<std::function<void()>>& due) {
  for (const auto& callback : due) callback();
}

// A queue of snapshots. Advances the coordinator to the cut of the first
// snapshot; Steps then takes the snapshot. Also holds the coordinator while a
// client chooses a cut for all servers.
//
// Not thread-safe: the caller's lock also guards the coordinator. The caller
// carries out each returned outcome. Functions add callbacks to `due`, for the
// caller to run without the lock.
class CutSnapshots {
 public:
  using Outcome = Coordinator::Outcome;
  using Due = std::vector<std::function<void()>>;
  struct Request {
    uint64_t ticket = 0;
    // The cut; nullopt means the first cut that can be reached.
    absl::optional<CutPoint> cut;
    SparseSnapshotOptions options;
    Steps::SnapshotCallback callback;
  };
  // Called with each snapshot that was taken, on the steps' thread and without
  // the lock. Passes the snapshot to the callback that Finish() returns.
  using OnSnapshot = std::function<void(
      uint64_t ticket, absl::StatusOr<ModelSnapshot> snapshot)>;

  static constexpr absl::Duration kHoldLimit = absl::Seconds(5);

  // `closes_cuts` is true if Begin() closes the cut. The pointers must outlive
  // this object.
  CutSnapshots(bool closes_cuts, Coordinator* coordinator, Steps* steps,
               OnSnapshot on_snapshot);

  // Stops applying new pushes until Add() or Release(), for kHoldLimit at most.
  // Call only if no snapshot waits.
  HeldSteps Hold(absl::Time now);
  // Ends a hold that Hold() began. Does nothing if a snapshot is waiting.
  Outcome Release();
  // Returns the time when Release() is due.
  absl::Time hold_ends() const { return hold_ends_; }

  Outcome Add(Request request, Due* due);
  // Returns true if the first snapshot has reached its cut and has not begun.
  bool IsDue() const;
  // Begins the first snapshot. Call only if IsDue().
  Outcome Begin();
  // Ends the snapshot that was just taken. Returns its callback, or null if the
  // snapshot has already ended.
  Steps::SnapshotCallback Finish(uint64_t ticket, Outcome* outcome, Due* due);
  // Ends a snapshot with the error `why`, unless Steps is taking the snapshot
  // now.
  Outcome Remove(uint64_t ticket, const absl::Status& why, Due* due);
  // Ends all snapshots with the error `why`.
  Outcome RemoveAll(const absl::Status& why, Due* due);

  // Returns the cut of the first snapshot, or null without one.
  const CutPoint* cut() const;
  // Returns true if the first snapshot waits for pushes before its cut.
  bool is_on_the_way() const { return !is_at_cut_ && cut() != nullptr; }

 private:
  Outcome GoOn();
  // Starts to advance to the cut of the first waiting snapshot. Ends snapshots
  // whose cut has passed. Adds to `outcome`.
  void Advance(Outcome* outcome, Due* due);

  const bool closes_cuts_;
  Coordinator* const coordinator_;
  Steps* const steps_;
  const OnSnapshot on_snapshot_;
  // The snapshots that were added and have not ended, in order. The server
  // advances to the cut of the first one only.
  std::deque<Request> waiting_;
  // True while steps_ takes the snapshot of the first request in waiting_.
  bool is_at_cut_ = false;
  // The time when a hold without a snapshot ends.
  absl::Time hold_ends_ = absl::InfiniteFuture();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CUT_SNAPSHOTS_H_
