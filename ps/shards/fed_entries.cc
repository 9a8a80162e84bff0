#include "ps/shards/fed_entries.h"

#include <algorithm>

namespace penstock::ps {
namespace {

bool IsBelow(const replication::WorkerPush& push,
             const std::vector<RankClock>& clocks) {
  const auto rank = std::lower_bound(
      clocks.begin(), clocks.end(), push.worker.rank,
      [](const RankClock& a, uint32_t b) { return a.worker.rank < b; });
  return rank != clocks.end() && rank->worker.rank == push.worker.rank &&
         rank->clock > push.clock;
}

}  // namespace

void FedEntries::Reset(uint64_t seq) {
  last_ = applied_ = seq;
  unapplied_.clear();
  images_.clear();
}

void FedEntries::Begin(const replication::Entry& entry,
                       const MembersNow& members) {
  is_feeding_ = true;
  const bool may_wait = !entry.pushes.empty() || is_held_;
  if (!unapplied_.empty() || !may_wait) return;
  images_.clear();
  AddImage(members);
}

bool FedEntries::End(const replication::Entry& entry, bool has_counted,
                     const MembersNow& members) {
  is_feeding_ = false;
  last_ = entry.seq;
  if (unapplied_.empty() && !has_counted && !is_held_) {
    images_.clear();
    applied_ = last_;
    return true;
  }
  if (entry.pushes.empty()) AddImage(members);
  Fed fed{last_, absl::nullopt};
  if (has_counted) fed.push = entry.pushes.front();
  unapplied_.push_back(fed);
  return false;
}

void FedEntries::AddImage(const MembersNow& members) {
  absl::optional<MembersImage> now = members();
  if (now.has_value()) images_.emplace_back(last_, *std::move(now));
}

size_t FedEntries::Advance(const std::vector<RankClock>& clocks) {
  size_t count = 0;
  while (!unapplied_.empty()) {
    const Fed& first = unapplied_.front();
    if (first.push.has_value() && !IsBelow(*first.push, clocks)) break;
    applied_ = first.seq;
    unapplied_.pop_front();
    ++count;
  }
  while (images_.size() > 1 && images_[1].first <= applied_) {
    images_.pop_front();
  }
  if (unapplied_.empty() && !is_feeding_) images_.clear();
  return count;
}

absl::optional<MembersImage> FedEntries::MembersAtApplied(
    const MembersImage& now) const {
  if (!images_.empty() && images_.front().first <= applied_) {
    return images_.front().second;
  }
  if (!unapplied_.empty()) return absl::nullopt;
  return now;
}

}  // namespace penstock::ps
