#include "ps/shards/worker_leases.h"

namespace penstock::ps {

void WorkerLeases::Clear() {
  alive_.clear();
  knows_members_ = false;
  start_at_ = absl::InfiniteFuture();
}

void WorkerLeases::Learn(const MembersImage& members, absl::Time now) {
  knows_members_ = true;
  for (const MembershipImage::Rank& each : members.membership.ranks) {
    if (!each.required_from.has_value()) continue;
    alive_.insert({{each.worker.rank, each.worker.incarnation}, now + lease_});
  }
  const bool waits = !members.membership.assembled && !alive_.empty();
  if (waits) start_at_ = now + assemble_timeout_;
}

void WorkerLeases::Note(const WorkerId& worker, absl::Time now) {
  if (!knows_members_) return;
  if (alive_.empty()) start_at_ = now + assemble_timeout_;
  alive_[{worker.rank, worker.incarnation}] = now + lease_;
}

void WorkerLeases::Renew(const WorkerId& worker, absl::Time now) {
  const auto alive = alive_.find({worker.rank, worker.incarnation});
  if (alive != alive_.end()) alive->second = now + lease_;
}

void WorkerLeases::Remove(const WorkerId& worker) {
  alive_.erase({worker.rank, worker.incarnation});
}

std::vector<WorkerId> WorkerLeases::Silent(absl::Time now) const {
  std::vector<WorkerId> silent;
  for (const auto& [worker, ends] : alive_) {
    if (now > ends) silent.push_back({worker.first, worker.second});
  }
  return silent;
}

}  // namespace penstock::ps
