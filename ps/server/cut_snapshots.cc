#include "ps/server/cut_snapshots.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/consistency/progress.h"

namespace penstock::ps {
namespace {

void Append(Coordinator::Outcome from, Coordinator::Outcome* to) {
  const auto move = [](auto* source, auto* target) {
    target->insert(target->end(), std::make_move_iterator(source->begin()),
                   std::make_move_iterator(source->end()));
  };
  move(&from.answers, &to->answers);
  move(&from.applies, &to->applies);
  move(&from.notes, &to->notes);
}

void AddCall(Steps::SnapshotCallback callback, const absl::Status& status,
             CutSnapshots::Due* due) {
  due->push_back(
      [callback = std::move(callback), status] { callback(status); });
}

}  // namespace

std::string Describe(const CutPoint& cut) {
  return cut.version.has_value() ? absl::StrCat("step ", *cut.version)
                                 : "the requested clocks";
}

CutSnapshots::CutSnapshots(bool closes_cuts, Coordinator* coordinator,
                           Steps* steps, OnSnapshot on_snapshot)
    : closes_cuts_(closes_cuts),
      coordinator_(coordinator),
      steps_(steps),
      on_snapshot_(std::move(on_snapshot)) {}

HeldSteps CutSnapshots::Hold(absl::Time now) {
  hold_ends_ = now + kHoldLimit;
  return coordinator_->Hold();
}

CutSnapshots::Outcome CutSnapshots::Release() {
  return waiting_.empty() ? GoOn() : Outcome();
}

CutSnapshots::Outcome CutSnapshots::GoOn() {
  hold_ends_ = absl::InfiniteFuture();
  return coordinator_->Release();
}

CutSnapshots::Outcome CutSnapshots::Add(Request request, Due* due) {
  Outcome outcome;
  waiting_.push_back(std::move(request));
  if (waiting_.size() == 1) Advance(&outcome, due);
  return outcome;
}

void CutSnapshots::Advance(Outcome* outcome, Due* due) {
  hold_ends_ = absl::InfiniteFuture();
  while (!waiting_.empty()) {
    Request& first = waiting_.front();
    if (!first.cut.has_value()) {
      // Chooses the cut without the other servers. A server without synchronous
      // tables does not wait for pushes that complete a step at other servers.
      const bool has_steps = StepsUnderWay(*coordinator_).has_value();
      first.cut = FirstCutOf({coordinator_->Hold()}, has_steps);
    }
    Outcome next;
    const bool can_come = coordinator_->GoOnTo(*first.cut, &next);
    Append(std::move(next), outcome);
    if (can_come) return;
    AddCall(std::move(first.callback),
            absl::OutOfRangeError(absl::StrCat("the server is past ",
                                               Describe(*first.cut),
                                               ": request a later one")),
            due);
    waiting_.pop_front();
  }
}

bool CutSnapshots::IsDue() const {
  return !is_at_cut_ && !waiting_.empty() && IsAtCut(*coordinator_);
}

CutSnapshots::Outcome CutSnapshots::Begin() {
  is_at_cut_ = true;
  Request& first = waiting_.front();
  steps_->AddSnapshot(
      first.ticket, std::move(first.options),
      [this, ticket = first.ticket](absl::StatusOr<ModelSnapshot> snapshot) {
        on_snapshot_(ticket, std::move(snapshot));
      });
  return closes_cuts_ ? coordinator_->CloseCut() : Outcome();
}

Steps::SnapshotCallback CutSnapshots::Finish(uint64_t ticket, Outcome* outcome,
                                             Due* due) {
  if (waiting_.empty() || waiting_.front().ticket != ticket) return nullptr;
  Steps::SnapshotCallback callback = std::move(waiting_.front().callback);
  waiting_.pop_front();
  is_at_cut_ = false;
  *outcome = GoOn();
  Advance(outcome, due);
  return callback;
}

CutSnapshots::Outcome CutSnapshots::Remove(uint64_t ticket,
                                           const absl::Status& why, Due* due) {
  Outcome outcome;
  const auto found = std::find_if(
      waiting_.begin(), waiting_.end(),
      [ticket](const Request& each) { return each.ticket == ticket; });
  if (found == waiting_.end()) return outcome;
  const bool is_first = found == waiting_.begin();
  // Leaves the snapshot in the queue if the steps' thread is taking it now:
  // RemoveSnapshot() then returns false.
  if (is_first && is_at_cut_ && !steps_->RemoveSnapshot(ticket)) return outcome;
  AddCall(std::move(found->callback), why, due);
  waiting_.erase(found);
  if (!is_first) return outcome;
  is_at_cut_ = false;
  outcome = GoOn();
  Advance(&outcome, due);
  return outcome;
}

CutSnapshots::Outcome CutSnapshots::RemoveAll(const absl::Status& why,
                                              Due* due) {
  if (waiting_.empty()) return {};
  steps_->RemoveSnapshots();
  for (Request& each : waiting_) AddCall(std::move(each.callback), why, due);
  waiting_.clear();
  is_at_cut_ = false;
  return GoOn();
}

const CutPoint* CutSnapshots::cut() const {
  if (waiting_.empty() || !waiting_.front().cut.has_value()) return nullptr;
  return &*waiting_.front().cut;
}

}  // namespace penstock::ps
