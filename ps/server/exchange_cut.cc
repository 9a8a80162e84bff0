// The calls of Exchange for snapshots at cuts.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/exchange.h"
#include "ps/server/refusals.h"
#include "transport/base/steady_notification.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

using base::SteadyNow;

HeldSteps Exchange::Hold() {
  Due due;
  HeldSteps held;
  {
    base::SteadyMutexLock lock(&mu_);
    const absl::Status why =
        absl::AbortedError("checkpoint: another one has been begun");
    HandleLocked(snapshots_.RemoveAll(why, &due), &due);
    held = snapshots_.Hold(SteadyNow());
    HandleLocked({}, &due);
  }
  RunAll(due);
  return held;
}

void Exchange::Release() {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    HandleLocked(snapshots_.Release(), &due);
  }
  RunAll(due);
}

void Exchange::OnSnapshot(uint64_t ticket,
                          absl::StatusOr<ModelSnapshot> snapshot) {
  Due due;
  Steps::SnapshotCallback callback;
  {
    base::SteadyMutexLock lock(&mu_);
    Outcome outcome;
    callback = snapshots_.Finish(ticket, &outcome, &due);
    if (callback == nullptr) return;  // the snapshot has ended meanwhile
    HandleLocked(std::move(outcome), &due);
  }
  callback(std::move(snapshot));
  RunAll(due);
}

void Exchange::RemoveSnapshot(uint64_t ticket, const absl::Status& why) {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    HandleLocked(snapshots_.Remove(ticket, why, &due), &due);
  }
  RunAll(due);
}

bool Exchange::NeverReachesCutLocked(const CheckedPush& push) const {
  if (!snapshots_.is_on_the_way()) return false;
  const CutPoint& cut = *snapshots_.cut();
  size_t behind = 0;
  for (const auto& [ticket, each] : pending_pushes_) {
    const bool is_behind = each.id.clock >= cut.ClockOf(each.id.rank);
    if (is_behind) behind += each.held_bytes;
  }
  return room_.NeverReaches(cut, {push.worker.rank, push.clock},
                            push.held_bytes, behind, held_, is_synchronous_);
}

absl::StatusOr<ModelSnapshot> Exchange::TakeSnapshot(
    uint64_t ticket, absl::optional<CutPoint> cut,
    const SparseSnapshotOptions& options, absl::Duration timeout,
    const std::function<void(uint64_t ticket)>& on_wait) {
  // Shared with the callback, which may run after the wait has ended.
  struct Result {
    base::SteadyNotification is_there;
    absl::StatusOr<ModelSnapshot> snapshot;
  };
  auto result = std::make_shared<Result>();
  CutSnapshots::Request request;
  request.ticket = ticket;
  request.cut = cut;
  request.options = options;
  request.callback = [result](absl::StatusOr<ModelSnapshot> snapshot) {
    result->snapshot = std::move(snapshot);
    result->is_there.Notify();
  };
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    if (is_draining_) return Draining();
    if (cut.has_value()) {
      absl::Status status = coordinator_.CheckCut(*cut, is_synchronous_);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("checkpoint: ", status.message()));
      }
    }
    HandleLocked(snapshots_.Add(std::move(request), &due), &due);
  }
  RunAll(due);
  if (on_wait) on_wait(ticket);
  if (!result->is_there.WaitFor(timeout)) {
    RemoveSnapshot(
        ticket,
        absl::DeadlineExceededError(absl::StrCat(
            "checkpoint: ", cut.has_value() ? Describe(*cut) : "a cut",
            " was not reached within ", absl::FormatDuration(timeout))));
  }
  result->is_there.Wait();
  return std::move(result->snapshot);
}

CutState Exchange::StateOfApplied() const {
  base::SteadyMutexLock lock(&mu_);
  CutState state;
  state.clocks = coordinator_.AppliedClocks();
  state.floor = coordinator_.AppliedFloor();
  const CutPoint* const cut = snapshots_.cut();
  if (cut == nullptr) return state;
  state.version = cut->version;
  // Corrects the clock of a rank that has joined again ahead of the cut. The
  // steps in between are not before the cut, because another server may still
  // count them.
  for (RankClock& each : state.clocks) {
    each.clock = std::min(each.clock, cut->ClockOf(each.worker.rank));
  }
  return state;
}

}  // namespace penstock::ps
