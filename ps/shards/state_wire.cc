#include "ps/shards/state_wire.h"

#include <string>
#include <utility>

#include "ps/checkpoint/manifest.h"
#include "ps/model/wire.h"
#include "tensor_service/checksum.h"

namespace penstock::ps {
namespace {

void AddMembers(const MembersImage& members, v1::SnapshotRestore* message) {
  message->set_assembled(members.membership.assembled);
  message->set_members_floor(members.membership.floor);
  message->set_lost(members.membership.lost);
  for (const MembershipImage::Rank& rank : members.membership.ranks) {
    v1::ReplicaRank* const to = message->add_ranks();
    *to->mutable_worker() = ToMessage(rank.worker);
    if (rank.previous.has_value()) to->set_previous(*rank.previous);
    to->set_clock(rank.clock);
    to->set_pushed(rank.pushed);
    to->set_has_left(rank.has_left);
    if (rank.required_from.has_value()) {
      to->set_required_from(*rank.required_from);
    }
  }
  for (const RankClock& each : members.counted) {
    *message->add_counted() = ToMessage(each);
  }
  message->set_pushes_counted(members.counts.counted);
  message->set_pushes_not_counted(members.counts.not_counted);
  message->set_pushes_refused(members.counts.refused);
}

MembersImage MembersIn(const v1::SnapshotRestore& message) {
  MembersImage members;
  members.membership.assembled = message.assembled();
  members.membership.floor = message.members_floor();
  members.membership.lost = message.lost();
  for (const v1::ReplicaRank& from : message.ranks()) {
    MembershipImage::Rank rank;
    rank.worker = FromMessage(from.worker());
    if (from.has_previous()) rank.previous = from.previous();
    rank.clock = from.clock();
    rank.pushed = from.pushed();
    rank.has_left = from.has_left();
    if (from.has_required_from()) rank.required_from = from.required_from();
    members.membership.ranks.push_back(rank);
  }
  for (const v1::WorkerClock& each : message.counted()) {
    members.counted.push_back(FromMessage(each));
  }
  members.counts = {message.pushes_counted(), message.pushes_not_counted(),
                    message.pushes_refused()};
  return members;
}

}  // namespace

v1::WorkerClock ToMessage(const RankClock& clock) {
  v1::WorkerClock message;
  *message.mutable_worker() = ToMessage(clock.worker);
  message.set_clock(clock.clock);
  return message;
}

v1::WorkerId ToMessage(const WorkerId& worker) {
  v1::WorkerId message;
  message.set_rank(worker.rank);
  message.set_incarnation(worker.incarnation);
  return message;
}

v1::SnapshotRestore ToMessage(const SnapshotState& state) {
  v1::SnapshotRestore result;
  v1::SnapshotRestore* const message = &result;
  message->set_id(state.id);
  message->set_bytes(state.bytes);
  message->set_checksum(state.checksum);
  *message->mutable_model() = ToMessage(state.definition.model);
  for (const std::string& server : state.definition.servers) {
    message->add_servers(server);
  }
  message->set_instance(state.instance);
  message->set_hash_seed(state.hash_seed);
  for (const RankClock& clock : state.restored.clocks) {
    *message->add_clocks() = ToMessage(clock);
  }
  if (state.restored.version.has_value()) {
    message->set_version(*state.restored.version);
  }
  message->set_floor(state.restored.floor.value_or(0));
  AddMembers(*state.restored.members, message);
  if (!state.definition.cut.has_value()) return result;
  const CutId& cut = *state.definition.cut;
  message->mutable_cut()->set_step(cut.step);
  message->mutable_cut()->set_id(cut.id);
  message->mutable_cut()->set_run(cut.run);
  for (const uint64_t run : cut.earlier_runs) {
    message->mutable_cut()->add_earlier_runs(run);
  }
  return result;
}

absl::StatusOr<SnapshotState> StateIn(const v1::SnapshotRestore& message,
                                      const replication::Group& group) {
  if (static_cast<size_t>(message.servers_size()) > replication::kMaxShards ||
      group.shard >= static_cast<size_t>(message.servers_size()) ||
      static_cast<size_t>(message.ranks_size()) > kMaxRanks ||
      static_cast<size_t>(message.clocks_size()) > kMaxRanks ||
      static_cast<size_t>(message.counted_size()) > kMaxRanks ||
      static_cast<size_t>(message.cut().earlier_runs_size()) >
          checkpoint::kMaxEarlierRuns) {
    return absl::InvalidArgumentError(
        "replicate: the state of a snapshot is out of bounds");
  }
  auto model = FromMessage(message.model());
  if (!model.ok()) return model.status();
  SnapshotState state;
  state.id = message.id();
  state.bytes = message.bytes();
  state.checksum = message.checksum();
  state.definition.model = *std::move(model);
  state.definition.servers.assign(message.servers().begin(),
                                  message.servers().end());
  state.definition.server = group.shard;
  state.definition.run = group.run;
  state.instance = message.instance();
  state.hash_seed = message.hash_seed();
  for (const v1::WorkerClock& clock : message.clocks()) {
    state.restored.clocks.push_back(FromMessage(clock));
  }
  if (message.has_version()) state.restored.version = message.version();
  state.restored.floor = message.floor();
  state.restored.members = MembersIn(message);
  if (message.has_cut()) {
    const auto& runs = message.cut().earlier_runs();
    state.definition.cut = CutId{message.cut().step(),
                                 message.cut().id(),
                                 message.cut().run(),
                                 {runs.begin(), runs.end()}};
  }
  return state;
}

uint64_t FingerprintOf(const ServerDefinition& definition) {
  v1::SnapshotRestore message;
  *message.mutable_model() = ToMessage(definition.model);
  for (const std::string& server : definition.servers) {
    message.add_servers(server);
  }
  return tensor::ChecksumOf(message.SerializeAsString());
}

}  // namespace penstock::ps
