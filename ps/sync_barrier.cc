#include "ps/sync_barrier.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

SyncBarrier::Outcome SyncBarrier::Handle(const Event& event, absl::Time now) {
  Outcome outcome;
  if (state_ == State::kDraining && event.kind != EventKind::kApplied) {
    outcome.verdict = Verdict::kDraining;
    return outcome;
  }
  switch (event.kind) {
    case EventKind::kJoin:
      outcome.verdict = OnJoin(event.member, now, &outcome);
      break;
    case EventKind::kHeartbeat:
      outcome.verdict = OnHeartbeat(event.member, now, &outcome);
      break;
    case EventKind::kLeave:
      if (IsMember(event.member)) members_.erase(event.member.rank);
      break;
    case EventKind::kLost:
      if (IsMember(event.member)) {
        Lose(event.member.rank, "its connection broke", &outcome);
      }
      break;
    case EventKind::kPush:
      outcome.verdict = OnPush(event.member, event.step, now);
      break;
    case EventKind::kApplied:
      OnApplied();
      break;
    case EventKind::kTick:
      OnTick(now, &outcome);
      break;
    case EventKind::kDrain:
      break;
  }
  if (event.kind == EventKind::kDrain) {
    state_ = State::kDraining;
  } else {
    Advance(now, &outcome);
  }
  return outcome;
}

// Makes the transitions of the table that have a guard.
void SyncBarrier::Advance(absl::Time now, Outcome* outcome) {
  if (state_ == State::kAssembling) {
    // The timeout starts anew with the next join.
    if (members_.empty()) assemble_deadline_ = absl::InfiniteFuture();
    bool all = members_.size() >= options_.expected_workers;
    if (!all && now < assemble_deadline_) return;
    if (!all) {
      outcome->notes.push_back(absl::StrCat(
          "starting with ", members_.size(), " of ", options_.expected_workers,
          " workers: the others did not come in time"));
    }
    state_ = State::kGathering;
  }
  if (state_ == State::kGathering && StepIsComplete()) {
    outcome->apply = Apply{version_, {pushed_.begin(), pushed_.end()}};
    apply_is_out_ = true;
    state_ = State::kApplying;
  }
}

SyncBarrier::Verdict SyncBarrier::OnJoin(const MemberId& id, absl::Time now,
                                         Outcome* outcome) {
  if (IsMember(id)) {
    members_[id.rank].expires = now + options_.lease;
    return Verdict::kAccepted;
  }
  if (members_.count(id.rank) > 0) {
    Lose(id.rank, "it has been started anew", outcome);
  }
  Add(id, now, outcome);
  return Verdict::kAccepted;
}

SyncBarrier::Verdict SyncBarrier::OnHeartbeat(const MemberId& id,
                                              absl::Time now,
                                              Outcome* outcome) {
  auto member = members_.find(id.rank);
  if (member == members_.end()) {
    Add(id, now, outcome);
    return Verdict::kAccepted;
  }
  if (member->second.incarnation != id.incarnation) return Verdict::kSuperseded;
  member->second.expires = now + options_.lease;
  return Verdict::kAccepted;
}

SyncBarrier::Verdict SyncBarrier::OnPush(const MemberId& id, uint64_t step,
                                         absl::Time now) {
  auto member = members_.find(id.rank);
  if (member == members_.end()) return Verdict::kNotMember;
  if (member->second.incarnation != id.incarnation) return Verdict::kSuperseded;
  member->second.expires = now + options_.lease;
  if (step < version_) return Verdict::kLate;
  if (step > version_) return Verdict::kAhead;
  if (state_ == State::kApplying) {
    // The set is closed: the caller may be averaging it right now.
    return pushed_.count(id.rank) > 0 ? Verdict::kDuplicate : Verdict::kLate;
  }
  return pushed_.insert(id.rank).second ? Verdict::kAccepted
                                        : Verdict::kDuplicate;
}

void SyncBarrier::OnApplied() {
  if (!apply_is_out_) return;
  apply_is_out_ = false;
  ++version_;
  pushed_.clear();
  if (state_ == State::kApplying) state_ = State::kGathering;
}

void SyncBarrier::OnTick(absl::Time now, Outcome* outcome) {
  std::vector<uint32_t> silent;
  for (const auto& member : members_) {
    if (member.second.expires <= now) silent.push_back(member.first);
  }
  for (uint32_t rank : silent) Lose(rank, "it fell silent", outcome);
}

void SyncBarrier::Add(const MemberId& id, absl::Time now, Outcome* outcome) {
  // If there is nobody else, the step cannot be completed without this member.
  bool at_once = state_ == State::kAssembling || members_.empty();
  uint64_t from = at_once ? version_ : version_ + 1;
  members_[id.rank] = Member{id.incarnation, now + options_.lease, from};
  if (state_ == State::kAssembling &&
      assemble_deadline_ == absl::InfiniteFuture()) {
    assemble_deadline_ = now + options_.assemble_timeout;
  }
  outcome->notes.push_back(absl::StrCat("worker ", id.rank, " has joined, ",
                                        members_.size(), " now"));
}

void SyncBarrier::Lose(uint32_t rank, const char* reason, Outcome* outcome) {
  members_.erase(rank);
  ++members_lost_;
  outcome->notes.push_back(absl::StrCat("worker ", rank, " is lost: ", reason,
                                        "; going on with ", members_.size()));
}

bool SyncBarrier::IsMember(const MemberId& id) const {
  auto member = members_.find(id.rank);
  return member != members_.end() &&
         member->second.incarnation == id.incarnation;
}

bool SyncBarrier::StepIsComplete() const {
  return !pushed_.empty() && Missing().empty();
}

std::vector<uint32_t> SyncBarrier::Missing() const {
  std::vector<uint32_t> missing;
  for (const auto& member : members_) {
    if (member.second.required_from <= version_ &&
        pushed_.count(member.first) == 0) {
      missing.push_back(member.first);
    }
  }
  return missing;
}

absl::Time SyncBarrier::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  if (state_ == State::kDraining) return next;
  for (const auto& member : members_) {
    next = std::min(next, member.second.expires);
  }
  if (state_ == State::kAssembling) next = std::min(next, assemble_deadline_);
  return next;
}

}  // namespace penstock::ps
