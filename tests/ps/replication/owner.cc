#include "tests/ps/replication/owner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

std::vector<ReplicaId> AllOf(const ShardReplicas& shard) {
  std::vector<ReplicaId> all = {shard.primary};
  all.insert(all.end(), shard.backups.begin(), shard.backups.end());
  all.insert(all.end(), shard.joiners.begin(), shard.joiners.end());
  return all;
}

bool Has(const std::vector<ReplicaId>& replicas, const ReplicaId& replica) {
  return std::find(replicas.begin(), replicas.end(), replica) != replicas.end();
}

}  // namespace

Owner::Owner(World* world, Hooks hooks, std::vector<ReplicaId> servers,
             size_t backups)
    : world_(world),
      hooks_(std::move(hooks)),
      backups_(backups),
      meddling_(std::array<uint64_t, 3>{0, 2, 20}[world->dice().Below(3)]) {
  View view = *FirstView(1, servers, backups);
  view.shards.resize(1);
  view_ = std::make_shared<const View>(std::move(view));
}

bool Owner::IsLive(const ReplicaId& replica) const {
  return Has(hooks_.servers(), replica);
}

bool Owner::CanSpare(const ReplicaId& replica) const {
  std::vector<ReplicaId> holders = {shard().primary};
  holders.insert(holders.end(), shard().backups.begin(), shard().backups.end());
  return std::any_of(holders.begin(), holders.end(), [&](const ReplicaId& id) {
    return id != replica && IsLive(id);
  });
}

bool Owner::IsFull() const {
  return shard().joiners.empty() && shard().backups.size() == backups_;
}

void Owner::Move(const absl::StatusOr<View>& next) {
  if (!next.ok()) return;
  const absl::Status wrong = CheckSuccessor(*view_, *next);
  if (!wrong.ok()) world_->Fail(absl::StrCat("owner: ", wrong.message()));
  world_->Count("view");
  if (next->shards[0].primary != shard().primary) world_->Count("new primary");
  view_ = std::make_shared<const View>(*next);
  hooks_.announce(view_);
}

void Owner::Drop(const ReplicaId& replica) {
  if (CanSpare(replica)) Move(WithoutReplica(*view_, replica));
}

void Owner::Act() {
  if (world_->now() < away_until_ && !world_->is_fair()) return;
  if (world_->dice().Chance(20)) hooks_.announce(view_);
  DropDead();
  AddJoiner();
  if (!world_->is_fair() && world_->dice().Chance(meddling_)) Meddle();
}

void Owner::DropDead() {
  for (const ReplicaId& replica : AllOf(shard())) {
    if (!IsLive(replica) && world_->dice().Chance(30)) return Drop(replica);
  }
}

void Owner::AddJoiner() {
  const std::vector<ReplicaId> all = AllOf(shard());
  if (all.size() > backups_) return;
  for (const ReplicaId& server : hooks_.servers()) {
    if (Has(all, server) || !world_->dice().Chance(30)) continue;
    return Move(WithJoiner(*view_, 0, server));
  }
}

void Owner::Meddle() {
  const std::vector<ReplicaId> all = AllOf(shard());
  switch (world_->dice().Below(3)) {
    case 0:
      return Drop(all[world_->dice().Below(all.size())]);
    case 1:
      if (shard().backups.empty()) return;
      return Move(WithPrimary(
          *view_, 0,
          shard().backups[world_->dice().Below(shard().backups.size())]));
    case 2:
      away_until_ = world_->now() + world_->Draw(absl::Seconds(60));
      return;
  }
}

void Owner::OnProposal(uint64_t view, const ReplicaId& joiner) {
  if (view != view_->number || world_->now() < away_until_) return;
  Move(WithBackup(*view_, 0, joiner));
}

void Owner::OnComplaint(uint64_t view, const ReplicaId& replica) {
  world_->Count("complaint");
  if (view != view_->number || world_->now() < away_until_) return;
  Drop(replica);
}

}  // namespace penstock::ps::replication
