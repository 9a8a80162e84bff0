#include "tests/ps/consistency/model.h"

#include <algorithm>
#include <utility>

namespace penstock::ps {
namespace {

constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;

}  // namespace

bool Model::IsMember(const WorkerId& worker) const {
  auto found = members_.find(worker.rank);
  return found != members_.end() &&
         found->second.incarnation == worker.incarnation;
}

uint64_t Model::ClockOf(uint32_t rank) const {
  auto began = began_.find(rank);
  uint64_t clock = began == began_.end() ? 0 : began->second;
  for (const auto& [pusher, step] : pushes_) {
    if (pusher == rank) clock = std::max(clock, step + 1);
  }
  return clock;
}

uint64_t Model::Progress(uint32_t rank) const {
  return std::max(ClockOf(rank), members_.at(rank).from);
}

std::vector<uint64_t> Model::SynchronousVersions() const {
  std::vector<uint64_t> versions;
  for (size_t at = 0; at < tables_.size(); ++at) {
    if (options_.policies[at].staleness == 0) {
      versions.push_back(tables_[at].version);
    }
  }
  if (versions.empty()) versions.push_back(floor_);
  return versions;
}

void Model::RaiseFloor() {
  if (!assembled_ || members_.empty()) return;
  uint64_t least = kMaxClock * 2;
  for (const auto& entry : members_) {
    least = std::min(least, Progress(entry.first));
  }
  floor_ = std::max(floor_, least);
}

void Model::Assemble(absl::Time now) {
  const bool late = now >= first_join_ + options_.membership.assemble_timeout;
  if (members_.size() >= options_.membership.expected_workers || late) {
    assembled_ = true;
  }
  RaiseFloor();
}

void Model::Hear(const WorkerId& worker, absl::Time now) {
  if (IsMember(worker)) members_[worker.rank].heard = now;
}

Model::Verdict Model::Standing(const WorkerId& worker) {
  if (worker.rank >= kMaxRanks) return Verdict::kInvalid;
  if (IsMember(worker)) return Verdict::kAccepted;
  if (members_.count(worker.rank) > 0) return Verdict::kSuperseded;
  const std::vector<uint64_t>& known = incarnations_[worker.rank];
  // Compares only with the previous incarnation of a rank. Older incarnations
  // are not remembered.
  const bool was_before =
      known.size() > 1 && known[known.size() - 2] == worker.incarnation;
  return was_before ? Verdict::kSuperseded : Verdict::kNotMember;
}

Model::Verdict Model::Join(const WorkerId& worker, absl::Time now) {
  if (worker.rank >= kMaxRanks) return Verdict::kInvalid;
  std::vector<uint64_t>& known = incarnations_[worker.rank];
  if (known.size() > 1 && known[known.size() - 2] == worker.incarnation) {
    return Verdict::kSuperseded;
  }
  if (IsMember(worker)) {
    Hear(worker, now);
    return Verdict::kAccepted;
  }
  members_.erase(worker.rank);
  RaiseFloor();
  if (members_.empty()) first_join_ = now;
  if (known.empty() || known.back() != worker.incarnation) {
    known.push_back(worker.incarnation);
  }
  const std::vector<uint64_t> versions = SynchronousVersions();
  const uint64_t oldest = *std::min_element(versions.begin(), versions.end());
  const uint64_t newest = *std::max_element(versions.begin(), versions.end());
  const uint64_t clock =
      std::max(ClockOf(worker.rank), std::min(oldest, floor_));
  const bool at_once = !assembled_ || members_.empty();
  began_[worker.rank] = clock;
  members_[worker.rank] = Member{
      worker.incarnation, at_once ? floor_ : std::max(floor_, newest + 1), now};
  left_.erase({worker.rank, worker.incarnation});
  Assemble(now);
  return Verdict::kAccepted;
}

Model::Verdict Model::Heartbeat(const WorkerId& worker, absl::Time now) {
  Hear(worker, now);
  const Verdict standing = Standing(worker);
  if (standing != Verdict::kNotMember) return standing;
  const std::vector<uint64_t>& known = incarnations_[worker.rank];
  const bool is_newest = !known.empty() && known.back() == worker.incarnation;
  if (is_newest && left_.count({worker.rank, worker.incarnation}) > 0) {
    return Verdict::kNotMember;
  }
  return Join(worker, now);
}

void Model::Leave(const WorkerId& worker) {
  if (!IsMember(worker)) return;
  left_.insert({worker.rank, worker.incarnation});
  Lost(worker);
}

void Model::Lost(const WorkerId& worker) {
  if (!IsMember(worker)) return;
  members_.erase(worker.rank);
  if (members_.empty()) first_join_ = absl::InfiniteFuture();
  RaiseFloor();
}

void Model::Tick(absl::Time now) {
  for (auto it = members_.begin(); it != members_.end();) {
    const bool is_over = it->second.heard + options_.membership.lease <= now;
    it = is_over ? members_.erase(it) : std::next(it);
  }
  if (members_.empty()) first_join_ = absl::InfiniteFuture();
  Assemble(now);
}

uint64_t Model::Limit(size_t policy) const {
  const int64_t staleness = options_.policies[policy].staleness;
  if (staleness == 0) return tables_[policy].version;
  if (staleness == kUnlimited) return kMaxClock;
  return floor_ + static_cast<uint64_t>(staleness);
}

Model::Pushes Model::Unapplied(size_t policy) const {
  const Table& table = tables_[policy];
  std::multiset<std::pair<uint64_t, uint32_t>> applied = table.applied;
  Pushes pushes;
  for (const auto& push : table.counted) {
    auto found = applied.find(push);
    if (found == applied.end()) {
      pushes.push_back(push);
    } else {
      applied.erase(found);
    }
  }
  return pushes;
}

absl::optional<Model::PushAnswer> Model::Push(const WorkerId& worker,
                                              uint64_t clock) {
  const Verdict standing = Standing(worker);
  if (standing != Verdict::kAccepted) return PushAnswer{standing, {}};
  if (clock >= kMaxClock) return PushAnswer{Verdict::kInvalid, {}};
  if (clock < ClockOf(worker.rank)) return PushAnswer{Verdict::kDuplicate, {}};
  for (size_t at = 0; at < tables_.size(); ++at) {
    if (clock > Limit(at)) return PushAnswer{Verdict::kAhead, {}};
  }
  if (IsFarAhead(worker.rank, clock)) return PushAnswer{Verdict::kAhead, {}};
  for (size_t at = 0; at < tables_.size(); ++at) {
    if (options_.policies[at].staleness == 0) continue;
    for (const auto& push : Unapplied(at)) {
      if (push.second == worker.rank) return absl::nullopt;
    }
  }
  PushAnswer answer{Verdict::kLate, {}};
  if (tables_.empty()) answer.verdict = Verdict::kAccepted;
  for (size_t at = 0; at < tables_.size(); ++at) {
    Table& table = tables_[at];
    const bool counts = options_.policies[at].staleness != 0 ||
                        (table.version == clock && table.applying.empty());
    if (counts) table.counted.push_back({clock, worker.rank});
    answer.counted.push_back(counts);
    if (counts) answer.verdict = Verdict::kAccepted;
  }
  pushes_.push_back({worker.rank, clock});
  RaiseFloor();
  return answer;
}

bool Model::IsFarAhead(uint32_t rank, uint64_t clock) const {
  std::vector<uint64_t> reached = SynchronousVersions();
  reached.push_back(ClockOf(rank));
  reached.push_back(floor_);
  return clock > *std::max_element(reached.begin(), reached.end()) + 65536;
}

bool Model::IsDue(uint64_t clock, const std::vector<size_t>& policies) const {
  for (size_t at : policies) {
    const int64_t staleness = options_.policies[at].staleness;
    if (staleness == kUnlimited) continue;
    if (staleness == 0) {
      if (tables_[at].version < clock) return false;
      continue;
    }
    const uint64_t slack = static_cast<uint64_t>(staleness);
    if (clock > floor_ + slack) return false;
    for (const auto& push : Unapplied(at)) {
      if (push.first + slack < clock) return false;
    }
  }
  return true;
}

std::vector<Coordinator::Apply> Model::TakeApplies() {
  std::vector<Coordinator::Apply> applies;
  for (size_t at = 0; at < tables_.size(); ++at) {
    Table& table = tables_[at];
    if (!table.applying.empty()) continue;
    Pushes waiting = Unapplied(at);
    if (waiting.empty()) continue;
    if (options_.policies[at].staleness == 0) {
      size_t missing = 0;
      for (const auto& entry : members_) {
        if (Progress(entry.first) <= table.version) ++missing;
      }
      if (!assembled_ || missing > options_.policies[at].backup_workers) {
        continue;
      }
      std::sort(
          waiting.begin(), waiting.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
    } else {
      waiting.resize(1);
    }
    table.applying = waiting;
    Coordinator::Apply apply{at, table.version, {}};
    for (const auto& push : waiting) {
      apply.pushes.push_back({push.second, push.first});
    }
    applies.push_back(apply);
  }
  return applies;
}

void Model::Applied(size_t policy) {
  Table& table = tables_[policy];
  if (table.applying.empty()) return;
  for (const auto& push : table.applying) table.applied.insert(push);
  table.applying.clear();
  ++table.version;
}

}  // namespace penstock::ps
