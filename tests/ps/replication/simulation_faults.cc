// The faults of a simulated cluster, and its end.

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/ps/replication/simulation.h"

namespace penstock::ps::replication {

void Simulation::Fault() {
  Host* host = &hosts_[world_.dice().Below(hosts_.size())];
  switch (world_.dice().Below(8)) {
    case 0:
    case 1:
      return Crash(host);
    case 2:
    case 3:
      if (host->node == nullptr) Restart(host);
      return;
    case 4:
      world_.Count("process frozen");
      host->frozen_until = world_.now() + world_.Draw(absl::Seconds(10));
      return;
    case 5:
      return CutLink();
    case 6:
      return JumpClock();
    case 7:
      world_.Count("worker replaced");
      return StartWorker(
          static_cast<uint32_t>(world_.dice().Below(workers_.size())));
  }
}

// Crashes a host, but never the last process that holds all acknowledged
// entries.
void Simulation::Crash(Host* host) {
  if (host->node == nullptr || !owner_->CanSpare(host->node->id())) return;
  world_.Count(host->node->replica().primary() != nullptr ? "primary crashed"
                                                          : "backup crashed");
  host->node = nullptr;
}

void Simulation::Restart(Host* host) {
  host->node = MakeNode({host->name, next_incarnation_++}, Node::Start::kEmpty);
  StartTimers(host->name);
}

void Simulation::CutLink() {
  const std::string from = hosts_[world_.dice().Below(hosts_.size())].name;
  const std::string to = hosts_[world_.dice().Below(hosts_.size())].name;
  const absl::Duration time = world_.Draw(absl::Seconds(20));
  if (world_.dice().Chance(30)) {
    world_.Cut(from, "owner", time);
    world_.Cut("owner", from, time);
    return;
  }
  world_.Cut(from, to, time);
  if (world_.dice().Chance(50)) world_.Cut(to, from, time);
}

// Limits the jumps of all clocks within one lease: their sum is less than the
// skew that the lease allows, unless clocks are wild.
void Simulation::JumpClock() {
  const bool is_wild = world_.has_wild_clocks();
  if (!is_wild && world_.now() < next_jump_) return;
  next_jump_ = world_.now() + absl::Seconds(3);
  Host* host = &hosts_[world_.dice().Below(hosts_.size())];
  if (host->node == nullptr) return;
  world_.Count("clock jump");
  const absl::Duration by =
      is_wild ? world_.Draw(absl::Minutes(10)) : absl::Milliseconds(60);
  host->node->clock().Jump(world_.dice().Chance(50) ? by : -by);
}

bool Simulation::HavePushed() const {
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].back()->pushed() < fair_goals_[rank]) return false;
  }
  return true;
}

bool Simulation::AreEqual() const {
  const Host* first = nullptr;
  for (const Host& host : hosts_) {
    const Holdings& holdings = host.node->replica().holdings();
    const ShardReplicas& shard = owner_->shard();
    const bool is_replica =
        host.node->id() == shard.primary ||
        std::count(shard.backups.begin(), shard.backups.end(),
                   host.node->id()) > 0;
    if (!is_replica) continue;
    if (holdings.applied != holdings.log.last()) return false;
    if (first == nullptr) first = &host;
    if (host.node->values().bits != first->node->values().bits) return false;
    const Holdings& other = first->node->replica().holdings();
    if (!(holdings.applied_history == other.applied_history)) return false;
  }
  return true;
}

bool Simulation::IsOver() const {
  return HavePushed() && owner_->IsFull() && AreEqual();
}

std::string Simulation::WhyNotOver() const {
  std::string text =
      absl::StrCat("view ", owner_->view()->number, ", pushed ", HavePushed(),
                   ", full ", owner_->IsFull(), ", equal ", AreEqual());
  for (const Host& host : hosts_) {
    const Holdings& holdings = host.node->replica().holdings();
    absl::StrAppend(&text, "; ", host.name, " ",
                    host.node->id() == owner_->shard().primary ? "leads" : "",
                    " in view ", host.node->replica().view(), " complete ",
                    holdings.complete, " last ", holdings.log.last(),
                    " committed ", holdings.committed, " applied ",
                    holdings.applied);
  }
  return text;
}

}  // namespace penstock::ps::replication
