#include "ps/consistency/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("membership: ", what));
}

absl::Status CheckClocks(const std::vector<RankClock>& clocks) {
  std::set<uint32_t> ranks;
  for (const RankClock& entry : clocks) {
    const uint32_t rank = entry.worker.rank;
    if (rank >= kMaxRanks || entry.clock > kMaxClock) {
      return Invalid(absl::StrCat("rank ", rank, " with clock ", entry.clock,
                                  " is out of bounds"));
    }
    if (!ranks.insert(rank).second) {
      return Invalid(absl::StrCat("rank ", rank, " has two clocks"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const MembershipImage& image) {
  std::vector<RankClock> clocks;
  for (const MembershipImage::Rank& rank : image.ranks) {
    clocks.push_back({rank.worker, std::max({rank.clock, rank.pushed,
                                             rank.required_from.value_or(0)})});
  }
  if (image.floor > kMaxClock) return Invalid("floor is out of bounds");
  return CheckClocks(clocks);
}

}  // namespace

absl::StatusOr<Membership> Membership::Create(const Options& options) {
  if (options.expected_workers == 0 || options.expected_workers > kMaxRanks) {
    return Invalid(absl::StrCat("expected_workers is ",
                                options.expected_workers, ", not 1 to ",
                                kMaxRanks));
  }
  if (options.lease <= absl::ZeroDuration()) {
    return Invalid("lease is not positive");
  }
  if (options.assemble_timeout < absl::ZeroDuration()) {
    return Invalid("assemble_timeout is negative");
  }
  if (options.floor > kMaxClock) return Invalid("floor is out of bounds");
  absl::Status status = CheckClocks(options.clocks);
  if (status.ok() && options.image.has_value()) {
    status = CheckImage(*options.image);
  }
  if (!status.ok()) return status;
  return Membership(options);
}

Membership::Membership(const Options& options)
    : options_(options), floor_(options.floor) {
  for (const RankClock& entry : options.clocks) {
    past_[entry.worker.rank] = Past{entry.worker.incarnation, absl::nullopt,
                                    entry.clock, false, entry.clock};
  }
  options_.clocks.clear();
  if (options_.image.has_value()) Take(*options_.image);
  options_.image.reset();
}

void Membership::Take(const MembershipImage& image) {
  if (image.assembled) state_ = State::kRunning;
  floor_ = std::max(floor_, image.floor);
  lost_ = image.lost;
  for (const MembershipImage::Rank& each : image.ranks) {
    const uint32_t rank = each.worker.rank;
    const uint64_t clock = std::max(each.clock, ClockOf(rank));
    past_[rank] = Past{each.worker.incarnation, each.previous, clock,
                       each.has_left, std::max(each.pushed, ClockOf(rank))};
    if (!each.required_from.has_value()) continue;
    const Member member{each.worker.incarnation, absl::InfiniteFuture(), clock,
                        *each.required_from, absl::InfinitePast()};
    members_[rank] = member;
    by_progress_.insert({ProgressOf(member), rank});
    by_expiry_.insert({member.expires, rank});
  }
  RaiseFloor();
}

MembershipImage Membership::Image() const {
  MembershipImage image;
  image.assembled = assembled();
  image.floor = floor_;
  image.lost = lost_;
  for (const auto& [rank, past] : past_) {
    MembershipImage::Rank each;
    each.worker = {rank, past.incarnation};
    each.previous = past.previous;
    each.clock = past.clock;
    each.pushed = past.pushed;
    each.has_left = past.has_left;
    const auto member = members_.find(rank);
    if (member != members_.end()) {
      each.required_from = member->second.required_from;
    }
    image.ranks.push_back(each);
  }
  return image;
}

Membership::Standing Membership::Join(const WorkerId& worker, absl::Time now,
                                      const absl::optional<Steps>& given,
                                      Changes* changes) {
  if (state_ == State::kDraining) return Standing::kDraining;
  if (worker.rank >= kMaxRanks) return Standing::kInvalid;
  if (WasSuperseded(worker)) return Standing::kSuperseded;
  if (IsMember(worker)) {
    Renew(worker.rank, now);
    return Standing::kMember;
  }
  if (members_.count(worker.rank) > 0) {
    Lose(worker.rank, "it was restarted", changes);
    RaiseFloor();
  }
  Add(worker, now, given, changes);
  Settle(now, changes);
  return Standing::kMember;
}

Membership::Standing Membership::Heartbeat(const WorkerId& worker,
                                           absl::Time now,
                                           const absl::optional<Steps>& given,
                                           Changes* changes) {
  const Standing standing = Check(worker, now);
  if (standing != Standing::kNotMember) return standing;
  auto past = past_.find(worker.rank);
  const bool has_left = past != past_.end() && past->second.has_left &&
                        past->second.incarnation == worker.incarnation;
  if (has_left) return Standing::kNotMember;
  return Join(worker, now, given, changes);
}

Membership::Standing Membership::StandingOf(const WorkerId& worker) const {
  if (state_ == State::kDraining) return Standing::kDraining;
  if (worker.rank >= kMaxRanks) return Standing::kInvalid;
  if (IsMember(worker)) return Standing::kMember;
  return HasMember(worker.rank) || WasSuperseded(worker) ? Standing::kSuperseded
                                                         : Standing::kNotMember;
}

Membership::Standing Membership::Check(const WorkerId& worker, absl::Time now) {
  const Standing standing = StandingOf(worker);
  if (standing == Standing::kMember) Renew(worker.rank, now);
  return standing;
}

void Membership::Leave(const WorkerId& worker, Changes* changes) {
  if (state_ == State::kDraining || !IsMember(worker)) return;
  Remove(worker.rank, changes);
  past_[worker.rank].has_left = true;
  RaiseFloor();
}

void Membership::Lost(const WorkerId& worker, Changes* changes) {
  if (state_ == State::kDraining || !IsMember(worker)) return;
  Lose(worker.rank, "its connection broke", changes);
  RaiseFloor();
}

void Membership::Tick(absl::Time now, Changes* changes) {
  if (state_ == State::kDraining) return;
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    Lose(by_expiry_.begin()->second, "no heartbeat came", changes);
  }
  Settle(now, changes);
  RaiseFloor();
}

void Membership::Start(Changes* changes) {
  if (state_ != State::kAssembling || members_.empty()) return;
  assemble_deadline_ = absl::InfinitePast();
  Settle(absl::InfinitePast(), changes);
}

void Membership::Advance(uint32_t rank, uint64_t clock, absl::Time now) {
  auto found = members_.find(rank);
  if (found == members_.end() || clock <= found->second.clock) return;
  found->second.advanced = now;
  past_[rank].pushed = clock;
  SetClock(&found->second, rank, clock);
}

void Membership::Forgo(uint32_t rank, uint64_t clock) {
  if (clock <= ClockOf(rank)) return;
  const auto member = members_.find(rank);
  if (member != members_.end()) return SetClock(&member->second, rank, clock);
  past_[rank].clock = clock;
}

void Membership::ForgoAll(uint64_t step) {
  for (auto& [rank, past] : past_) Forgo(rank, step);
  floor_ = std::max(floor_, step);  // where other ranks begin
}

void Membership::SetClock(Member* member, uint32_t rank, uint64_t clock) {
  by_progress_.erase({ProgressOf(*member), rank});
  member->clock = clock;
  by_progress_.insert({ProgressOf(*member), rank});
  past_[rank].clock = clock;
  RaiseFloor();
}

void Membership::Add(const WorkerId& worker, absl::Time now,
                     const absl::optional<Steps>& given, Changes* changes) {
  const uint32_t rank = worker.rank;
  const Steps steps = given.value_or(Steps{floor_, floor_});
  const uint64_t clock =
      std::max(ClockOf(rank), std::min(floor_, steps.oldest));
  // Lets the worker begin immediately if it is the only member, because no step
  // can complete without it.
  const bool at_once = state_ == State::kAssembling || members_.empty();
  const uint64_t from = at_once ? floor_ : std::max(floor_, steps.newest + 1);
  const Member member{worker.incarnation, now + options_.lease, clock,
                      std::max(clock, from), now};
  members_[rank] = member;
  by_progress_.insert({ProgressOf(member), rank});
  by_expiry_.insert({member.expires, rank});
  auto past = past_.find(rank);
  if (past == past_.end()) {
    past_[rank] = Past{worker.incarnation, absl::nullopt, clock, false, 0};
  } else {
    if (past->second.incarnation != worker.incarnation) {
      past->second.previous = past->second.incarnation;
    }
    past->second.incarnation = worker.incarnation;
    past->second.clock = clock;
    past->second.has_left = false;
  }
  if (state_ == State::kAssembling && members_.size() == 1) {
    assemble_deadline_ = now + options_.assemble_timeout;
  }
  RaiseFloor();
  changes->notes.push_back(absl::StrCat("worker ", rank, " has joined at step ",
                                        clock, ", ", members_.size(), " now"));
}

void Membership::Remove(uint32_t rank, Changes* changes) {
  auto member = members_.find(rank);
  by_progress_.erase({ProgressOf(member->second), rank});
  by_expiry_.erase({member->second.expires, rank});
  members_.erase(member);
  // Forget the deadline. The next join sets a new one.
  if (members_.empty()) assemble_deadline_ = absl::InfiniteFuture();
  changes->departed.push_back(rank);
}

void Membership::Lose(uint32_t rank, const char* reason, Changes* changes) {
  Remove(rank, changes);
  ++lost_;
  changes->notes.push_back(absl::StrCat("worker ", rank, " is lost: ", reason,
                                        "; continuing with ", members_.size()));
}

void Membership::Renew(uint32_t rank, absl::Time now) {
  Member& member = members_[rank];
  by_expiry_.erase({member.expires, rank});
  member.expires = std::max(member.expires, now + options_.lease);
  by_expiry_.insert({member.expires, rank});
}

void Membership::Settle(absl::Time now, Changes* changes) {
  if (state_ != State::kAssembling) return;
  const bool all = members_.size() >= options_.expected_workers;
  if (!all && now < assemble_deadline_) return;
  if (!all) {
    changes->notes.push_back(absl::StrCat(
        "starting with ", members_.size(), " of ", options_.expected_workers,
        " workers: the others did not come in time"));
  }
  state_ = State::kRunning;
  RaiseFloor();
}

void Membership::RaiseFloor() {
  if (state_ == State::kAssembling || by_progress_.empty()) return;
  // The floor never decreases, because a joining worker begins at the floor or
  // later.
  floor_ = by_progress_.begin()->first;
}

bool Membership::IsMember(const WorkerId& worker) const {
  auto member = members_.find(worker.rank);
  return member != members_.end() &&
         member->second.incarnation == worker.incarnation;
}

bool Membership::WasSuperseded(const WorkerId& worker) const {
  auto past = past_.find(worker.rank);
  return past != past_.end() && past->second.previous == worker.incarnation;
}

uint64_t Membership::ProgressOf(const Member& member) {
  return std::max(member.clock, member.required_from);
}

uint64_t Membership::ClockOf(uint32_t rank) const {
  auto past = past_.find(rank);
  return past == past_.end() ? 0 : past->second.clock;
}

uint64_t Membership::PushedClockOf(uint32_t rank) const {
  auto past = past_.find(rank);
  return past == past_.end() ? 0 : past->second.pushed;
}

std::vector<RankClock> Membership::Clocks() const {
  std::vector<RankClock> clocks;
  clocks.reserve(past_.size());
  for (const auto& [rank, past] : past_) {
    clocks.push_back({{rank, past.incarnation}, past.clock});
  }
  return clocks;
}

size_t Membership::CountBelow(uint64_t step, size_t most) const {
  size_t count = 0;
  for (const auto& [progress, rank] : by_progress_) {
    if (progress >= step || count == most) break;
    ++count;
  }
  return count;
}

std::vector<uint32_t> Membership::Below(uint64_t step, size_t most) const {
  std::vector<uint32_t> ranks;
  for (const auto& [progress, rank] : by_progress_) {
    if (progress >= step || ranks.size() == most) break;
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

absl::optional<Membership::Laggard> Membership::Slowest() const {
  if (by_progress_.empty()) return absl::nullopt;
  const auto [least, rank] = *by_progress_.begin();
  const Member& member = members_.at(rank);
  return Laggard{rank, member.clock, by_progress_.rbegin()->first - least,
                 member.advanced};
}

absl::Time Membership::NextDeadline() const {
  if (state_ == State::kDraining) return absl::InfiniteFuture();
  absl::Time next = absl::InfiniteFuture();
  if (!by_expiry_.empty()) next = by_expiry_.begin()->first;
  if (state_ == State::kAssembling) next = std::min(next, assemble_deadline_);
  return next;
}

}  // namespace penstock::ps
