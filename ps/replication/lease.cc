#include "ps/replication/lease.h"

#include <algorithm>

namespace penstock::ps::replication {

LeaseStamp Lease::Ask(absl::Time now) {
  Look(now);
  return {now, era_};
}

void Lease::Grant(const ReplicaId& by, const LeaseStamp& asked,
                  absl::Time now) {
  Look(now);
  if (asked.era != era_ || asked.sent > now) return;
  absl::Time& end = ends_.emplace(by, absl::InfinitePast()).first->second;
  end = std::max(end, asked.sent + times_.duration - times_.max_skew);
}

bool Lease::Covers(const std::vector<ReplicaId>& replicas, absl::Time now) {
  Look(now);
  return std::all_of(replicas.begin(), replicas.end(),
                     [&](const ReplicaId& replica) {
                       const auto end = ends_.find(replica);
                       return end != ends_.end() && now < end->second;
                     });
}

void Lease::Look(absl::Time now) {
  if (now < last_look_) {
    ++era_;
    ends_.clear();
  }
  last_look_ = now;
}

void Promises::Give(const ReplicaId& to, absl::Duration duration,
                    absl::Time now) {
  const absl::Time until = now + duration;
  const auto [promise, is_new] = until_.emplace(to, Promise{until, duration});
  if (is_new || promise->second.until < until) {
    promise->second = {until, duration};
  }
}

bool Promises::AreOver(absl::Time now) {
  for (auto at = until_.begin(); at != until_.end();) {
    Promise& promise = at->second;
    promise.until = std::min(promise.until, now + promise.duration);
    at = promise.until <= now ? until_.erase(at) : std::next(at);
  }
  return until_.empty();
}

absl::Time Promises::until() const {
  absl::Time latest = absl::InfinitePast();
  for (const auto& entry : until_) {
    latest = std::max(latest, entry.second.until);
  }
  return latest;
}

}  // namespace penstock::ps::replication
