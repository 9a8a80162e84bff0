// Snapshots at cuts.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/server/exchange.h"
#include "ps/server/refusals.h"

namespace penstock::ps {

using base::SteadyNow;

namespace {

bool HasSynchronousTable(const Training& training) {
  for (const TableSpec& table : training.tables->model().model().tables) {
    if (table.staleness == 0) return true;
  }
  return false;
}

std::string TextOf(const CutPoint& cut) {
  return cut.version.has_value() ? absl::StrCat("step ", *cut.version)
                                 : "the clocks that were asked for";
}

}  // namespace

HeldSteps Exchange::Hold() {
  Due due;
  HeldSteps held;
  {
    absl::MutexLock lock(&mu_);
    EndSnapshotsLocked(
        absl::AbortedError("checkpoint: another one has been begun"), &due);
    held = coordinator_.Hold();
    hold_ends_ = SteadyNow() + kHoldLimit;
    HandleLocked({}, &due);
  }
  Run(due);
  return held;
}

void Exchange::Release() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (snapshots_.empty()) ReleaseLocked(&due);
  }
  Run(due);
}

void Exchange::ReleaseLocked(Due* due) {
  hold_ends_ = absl::InfiniteFuture();
  HandleLocked(coordinator_.Release(), due);
}

void Exchange::BeginSnapshotLocked(Due* due) {
  hold_ends_ = absl::InfiniteFuture();
  while (!snapshots_.empty()) {
    PendingSnapshot& first = snapshots_.front();
    if (!first.cut.has_value()) {
      first.cut =
          FirstCutOf({coordinator_.Hold()}, HasSynchronousTable(*training_));
    }
    Outcome outcome;
    const bool can_come = coordinator_.GoOnTo(*first.cut, &outcome);
    HandleLocked(std::move(outcome), due);
    if (can_come) return;
    const absl::Status status = absl::OutOfRangeError(absl::StrCat(
        "the server is past ", TextOf(*first.cut), ": ask for a later one"));
    due->push_back(
        [callback = std::move(first.callback), status] { callback(status); });
    snapshots_.pop_front();
  }
}

void Exchange::TakeSnapshotAtCutLocked(Due* due) {
  if (is_at_cut_ || snapshots_.empty() || !coordinator_.IsAtCut()) return;
  is_at_cut_ = true;
  PendingSnapshot& first = snapshots_.front();
  steps_->AddSnapshot(
      first.ticket, std::move(first.options),
      [this, ticket = first.ticket](absl::StatusOr<ModelSnapshot> snapshot) {
        OnSnapshot(ticket, std::move(snapshot));
      });
  HandleLocked(coordinator_.CloseCut(), due);
}

void Exchange::OnSnapshot(uint64_t ticket,
                          absl::StatusOr<ModelSnapshot> snapshot) {
  Due due;
  Steps::SnapshotCallback callback;
  {
    absl::MutexLock lock(&mu_);
    // The snapshot may have ended meanwhile.
    if (snapshots_.empty() || snapshots_.front().ticket != ticket) return;
    callback = std::move(snapshots_.front().callback);
    snapshots_.pop_front();
    is_at_cut_ = false;
    ReleaseLocked(&due);
    BeginSnapshotLocked(&due);
  }
  callback(std::move(snapshot));
  Run(due);
}

bool Exchange::RemoveSnapshot(uint64_t ticket, const absl::Status& why) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    auto found = snapshots_.begin();
    while (found != snapshots_.end() && found->ticket != ticket) ++found;
    if (found == snapshots_.end()) return false;
    const bool is_first = found == snapshots_.begin();
    // False if the steps' thread is taking the snapshot now.
    if (is_first && is_at_cut_ && !steps_->RemoveSnapshot(ticket)) return false;
    due.push_back(
        [callback = std::move(found->callback), why] { callback(why); });
    snapshots_.erase(found);
    if (is_first) {
      is_at_cut_ = false;
      ReleaseLocked(&due);
      BeginSnapshotLocked(&due);
    }
  }
  Run(due);
  return true;
}

bool Exchange::NeverReachesCutLocked(const PendingPush& push) const {
  if (is_at_cut_ || snapshots_.empty()) return false;
  const absl::optional<CutPoint>& cut = snapshots_.front().cut;
  if (!cut.has_value() || push.id.clock >= cut->ClockOf(push.id.rank)) {
    return false;
  }
  // With synchronous tables, a step before the cut may wait for this push.
  size_t bytes = push.held_bytes + (HasSynchronousTable(*training_)
                                        ? held_.bytes()
                                        : held_.BytesBehind(*cut));
  for (const auto& [ticket, each] : pending_pushes_) {
    const bool is_behind = each.id.clock >= cut->ClockOf(each.id.rank);
    if (is_behind) bytes += each.held_bytes;
  }
  return bytes > options_.max_held_bytes;
}

void Exchange::EndSnapshotsLocked(const absl::Status& why, Due* due) {
  if (snapshots_.empty()) return;
  steps_->RemoveSnapshots();
  for (PendingSnapshot& each : snapshots_) {
    due->push_back(
        [callback = std::move(each.callback), why] { callback(why); });
  }
  snapshots_.clear();
  is_at_cut_ = false;
  ReleaseLocked(due);
}

absl::StatusOr<ModelSnapshot> Exchange::TakeSnapshot(
    uint64_t ticket, absl::optional<CutPoint> cut,
    const SparseSnapshotOptions& options, absl::Duration timeout,
    const std::function<void(uint64_t ticket)>& on_wait) {
  // The callback keeps the result alive if the wait ends before the answer.
  struct Result {
    absl::Notification is_there;
    absl::StatusOr<ModelSnapshot> snapshot;
  };
  auto result = std::make_shared<Result>();
  PendingSnapshot pending;
  pending.ticket = ticket;
  pending.cut = cut;
  pending.options = options;
  pending.callback = [result](absl::StatusOr<ModelSnapshot> snapshot) {
    result->snapshot = std::move(snapshot);
    result->is_there.Notify();
  };
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    if (is_draining_) return Draining();
    snapshots_.push_back(std::move(pending));
    if (snapshots_.size() == 1) BeginSnapshotLocked(&due);
  }
  Run(due);
  if (on_wait) on_wait(ticket);
  if (!result->is_there.WaitForNotificationWithTimeout(timeout)) {
    RemoveSnapshot(
        ticket,
        absl::DeadlineExceededError(absl::StrCat(
            "checkpoint: ", cut.has_value() ? TextOf(*cut) : "a cut",
            " was not reached within ", absl::FormatDuration(timeout))));
  }
  result->is_there.WaitForNotification();
  return std::move(result->snapshot);
}

CutState Exchange::StateOfApplied() const {
  absl::MutexLock lock(&mu_);
  CutState state;
  state.clocks = coordinator_.AppliedClocks();
  state.floor = coordinator_.AppliedFloor();
  if (!snapshots_.empty() && snapshots_.front().cut.has_value()) {
    state.version = snapshots_.front().cut->version;
  }
  return state;
}

}  // namespace penstock::ps
