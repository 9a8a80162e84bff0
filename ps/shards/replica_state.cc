#include "ps/shards/replica_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/rounds.h"
#include "ps/wire/shard_key.h"

namespace penstock::ps {
namespace {

// Limits the wait for a push that is being fed.
constexpr absl::Duration kIdleTimeout = absl::Seconds(10);

replication::Options ReplicaOptions(const ShardOptions& options,
                                    const replication::Group& group,
                                    const replication::ReplicaId& self) {
  replication::Options replica;
  replica.group = group;
  replica.self = self;
  replica.lease = options.lease;
  replica.max_log_bytes = options.max_log_bytes;
  replica.patience = options.lease.duration * 1.5;
  return replica;
}

replication::Replica MakeReplica(const replication::Options& options,
                                 bool has_values, bool leads) {
  if (!has_values) return replication::Replica(options);
  return replication::Replica(options, {}, leads);
}

}  // namespace

ReplicaState::ReplicaState(const ShardOptions& shard_options,
                           const replication::Group& of,
                           const replication::ReplicaId& me,
                           std::shared_ptr<Server> first, bool leads)
    : options(shard_options),
      group(of),
      self(me),
      replica(MakeReplica(ReplicaOptions(options, group, self),
                          first != nullptr, leads)),
      server(std::move(first)),
      leases(options.worker_lease, options.assemble_timeout) {
  if (server == nullptr) return;
  training_view = {group.run, server->training()->tables->placement().epoch()};
}

absl::Status ReplicaState::NotPrimary() const {
  if (view.number == 0) {
    return absl::UnavailableError(
        absl::StrCat(kNotPrimary, ": there is no view yet"));
  }
  const replication::ReplicaId& leads = view.shards[group.shard].primary;
  return absl::UnavailableError(
      absl::StrCat(kNotPrimary, ": shard ", group.shard, " is led by ",
                   TextOf(leads), " in view ", view.number));
}

bool ReplicaState::LeavesToBackup() {
  if (failure.ok() && server != nullptr) {
    const absl::Status state = server->AppliedClocks(training_view).status();
    // Ignores other errors: a server that shuts down has not failed.
    if (absl::IsAborted(state) || absl::IsDataLoss(state) ||
        absl::IsResourceExhausted(state)) {
      failure = state;
      Say(absl::StrCat("its server has failed: ", state.message()));
    }
  }
  return !failure.ok() && !view.shards[group.shard].backups.empty();
}

replication::Answer ReplicaState::PlainAnswer(absl::Status status) const {
  replication::Answer answer;
  answer.envelope = {group, self, replica.view()};
  answer.status = std::move(status);
  answer.is_empty = !replica.holdings().has_values;
  return answer;
}

absl::Status ReplicaState::CheckFromPrimary(
    const replication::Envelope& envelope) const {
  absl::Status same = CheckSameGroup(group, envelope.group);
  if (!same.ok()) return same;
  if (envelope.view != replica.view()) {
    return absl::UnavailableError(
        absl::StrCat("the message is of view ", envelope.view,
                     ", and this server is in view ", replica.view()));
  }
  if (envelope.from == view.shards[group.shard].primary) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(TextOf(envelope.from), " is not the primary"));
}

bool ReplicaState::AwaitIdle() {
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return !fed.is_feeding();
  };
  ++wants_idle;
  const bool idle = mu.AwaitFor(kIdleTimeout, is_idle);
  --wants_idle;
  wants_pump = true;
  return idle;
}

void ReplicaState::Advance(const std::vector<RankClock>& clocks) {
  for (size_t count = fed.Advance(clocks); count > 0; --count) {
    replica.Applied();
  }
}

void ReplicaState::Pump() {
  base::SteadyMutexLock lock(&mu);
  wants_pump = true;
}

void ReplicaState::Work() {
  const std::shared_ptr<Rounds> helped = rounds.lock();
  if (helped != nullptr) helped->Help();
}

void ReplicaState::EndTracked() {
  base::SteadyMutexLock lock(&mu);
  --tracked;
}

void ReplicaState::Say(const std::string& line) const {
  LogLines(options.log, {absl::StrCat("shard ", group.shard, ": ", line)});
}

}  // namespace penstock::ps
