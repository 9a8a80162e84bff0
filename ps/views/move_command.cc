#include "ps/views/move_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "ps/membership/members.h"
#include "ps/membership/moves.h"
#include "ps/replication/replica_list.h"
#include "ps/views/view_text.h"

namespace penstock::ps::views {
namespace {

using membership::v1::Move;
using membership::v1::Server;
using replication::ReplicaId;
using replication::ShardReplicas;

constexpr absl::Duration kRound = absl::Milliseconds(50);
// The time for which nothing must change until the command counts as done. The
// servers may need this long for the next step.
constexpr absl::Duration kRest = absl::Milliseconds(500);
// Limits the attempts to write a key that servers also write.
constexpr int kMaxTries = 8;

std::string NamesOf(const std::vector<Server>& servers) {
  return absl::StrJoin(servers, ", ", [](std::string* out, const Server& each) {
    absl::StrAppend(out, NameOf(each));
  });
}

}  // namespace

ReplicaId IdOf(const Server& server) {
  return {server.address(), server.incarnation()};
}

std::string NameOf(const Server& server) {
  return absl::StrCat(server.name(), " (", server.address(), ")");
}

const Server* Find(const std::vector<Server>& servers,
                   const std::string& name) {
  const auto found =
      std::find_if(servers.begin(), servers.end(), [&](const Server& each) {
        return each.name() == name || each.address() == name;
      });
  return found == servers.end() ? nullptr : &*found;
}

bool HasAddress(const std::vector<std::string>& addresses,
                const std::string& address) {
  return std::find(addresses.begin(), addresses.end(), address) !=
         addresses.end();
}

// Returns a shard whose only live copies are at `address`, or nullopt.
absl::optional<size_t> ShardWithoutOther(const Situation& now,
                                         const std::string& address) {
  for (size_t i = 0; now.view && i < now.view->shards.size(); ++i) {
    const replication::ShardReplicas& shard = now.view->shards[i];
    bool is_here = false;
    bool is_elsewhere = false;
    const auto look = [&](const ReplicaId& id) {
      is_here |= id.server == address;
      is_elsewhere |= id.server != address && replication::Has(now.live, id);
    };
    look(shard.primary);
    for (const ReplicaId& backup : shard.backups) look(backup);
    if (is_here && !is_elsewhere) return i;
  }
  return absl::nullopt;
}

MoveCommand::MoveCommand(const MovingOptions& options)
    : options_(options),
      limit_(base::SteadyNow() + options.timeout),
      mirror_(options.member->registry()->client(),
              options.member->registry()->prefix()) {}

absl::Status MoveCommand::Begin(Move::Kind kind) {
  const absl::Time limit =
      std::min(limit_, base::SteadyNow() + membership::Registry::kTimeout);
  const auto any = [](const etcd::Values&) { return true; };
  if (!mirror_.Await(any, limit)) {
    return absl::UnavailableError(
        absl::StrCat("etcd does not answer: ", mirror_.status().message()));
  }
  auto claim = membership::ClaimMove(options_.member->registry(), kind);
  if (!claim.ok()) return claim.status();
  claim_ = *std::move(claim);
  return Read();
}

absl::Status MoveCommand::Read() {
  const etcd::Values values = mirror_.values();
  const std::string& prefix = options_.member->registry()->prefix();
  auto servers = membership::RegisteredServers(values, prefix);
  if (!servers.ok()) return servers.status();
  now_.registered = *std::move(servers);
  absl::Status status = newest_.Take(values, prefix);
  if (!status.ok()) return status;
  now_.view = newest_.view();
  now_.places = newest_.servers();
  auto requests = ReadMoveRequests(values, prefix, now_.places);
  if (!requests.ok()) return requests.status();
  now_.requests = *std::move(requests);
  now_.live.clear();
  for (const Server& server : now_.registered) {
    const bool has_place = HasAddress(now_.places, server.address());
    if (has_place || now_.places.empty()) now_.copies = server.replicas() + 1;
    if (has_place) now_.live.push_back(IdOf(server));
  }
  Report();
  return absl::OkStatus();
}

absl::StatusOr<Server> MoveCommand::Registered(const std::string& name) const {
  const Server* const found = Find(now_.registered, name);
  if (found != nullptr) return *found;
  return absl::NotFoundError(absl::StrCat(
      "no server ", name, " is registered under ",
      options_.member->registry()->prefix(), " in etcd: ",
      now_.registered.empty() ? "there is none" : NamesOf(now_.registered)));
}

absl::Status MoveCommand::CheckReplicated() const {
  if (now_.copies > 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the servers keep no replicas, so shards cannot move: start the "
      "servers with --replicas");
}

absl::Status MoveCommand::Await(
    const std::function<absl::StatusOr<bool>()>& is_done) {
  while (true) {
    absl::Status status = Read();
    if (!status.ok()) return status;
    if (absl::IsAlreadyExists(claim_->status())) {
      return absl::AbortedError(
          absl::StrCat("etcd was unreachable for too long, and ",
                       claim_->status().message()));
    }
    const auto done = is_done();
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    if (options_.interrupted && options_.interrupted()) {
      return absl::CancelledError(
          absl::StrCat("interrupted; it waited for this: ", Waits()));
    }
    if (base::SteadyNow() >= limit_) {
      return absl::DeadlineExceededError(absl::StrCat(
          "not done within ", absl::FormatDuration(options_.timeout),
          "; it waited for this: ", Waits()));
    }
    ReportWait();
    absl::SleepFor(kRound);
  }
}

absl::Status MoveCommand::RetryWrite(
    const std::function<absl::Status()>& write) const {
  absl::Status status;
  for (int i = 0; i < kMaxTries; ++i) {
    status = write();
    if (!absl::IsAborted(status)) return status;
    absl::SleepFor(kRound);
  }
  return status;
}

bool MoveCommand::IsBusy() const {
  if (!now_.view) return true;
  const auto is_live = [this](const ReplicaId& id) { return IsLive(id); };
  for (const ShardReplicas& shard : now_.view->shards) {
    const bool is_settled =
        shard.joiners.empty() && IsLive(shard.primary) &&
        shard.backups.size() + 1 >= CopiesNow() &&
        std::all_of(shard.backups.begin(), shard.backups.end(), is_live);
    if (!is_settled) return true;
  }
  return NextMove(*now_.view, now_.live, now_.requests, now_.copies)
      .has_value();
}

bool MoveCommand::Rests() {
  if (IsBusy()) last_busy_ = base::SteadyNow();
  return base::SteadyNow() - last_busy_ >= kRest;
}

void MoveCommand::Say(const std::string& line) const {
  if (options_.progress) options_.progress(line);
}

bool MoveCommand::IsLive(const ReplicaId& id) const {
  return replication::Has(now_.live, id);
}

size_t MoveCommand::CopiesNow() const {
  size_t usable = 0;
  for (const ReplicaId& id : now_.live) {
    usable += replication::Has(now_.requests.leaving, id) ? 0 : 1;
  }
  return std::min(usable, now_.copies);
}

void MoveCommand::Report() {
  const auto& view = now_.view;
  if (!view || (reported_ && reported_->number == view->number)) return;
  for (size_t i = 0; reported_ && i < view->shards.size(); ++i) {
    const bool is_same =
        i < reported_->shards.size() && reported_->shards[i] == view->shards[i];
    if (!is_same) Say(TextOfShard(*view, i));
  }
  reported_ = view;
}

void MoveCommand::ReportWait() {
  std::string waits = Waits();
  if (waits != waits_) {
    waits_ = std::move(waits);
    waits_since_ = base::SteadyNow();
    has_reported_wait_ = false;
  }
  if (has_reported_wait_ || base::SteadyNow() - waits_since_ < options_.quiet) {
    return;
  }
  has_reported_wait_ = true;
  Say(absl::StrCat("it waits for this: ", waits_));
}

std::string MoveCommand::Waits() const {
  const absl::Status etcd = mirror_.status();
  if (!etcd.ok()) return absl::StrCat("etcd: ", etcd.message());
  if (!now_.view) return "the first view";
  for (size_t i = 0; i < now_.view->shards.size(); ++i) {
    const ShardReplicas& shard = now_.view->shards[i];
    if (!shard.joiners.empty()) {
      return absl::StrCat("shard ", i, ": ", shard.joiners.front().server,
                          " catches up");
    }
    if (!IsLive(shard.primary)) {
      return absl::StrCat("shard ", i, ": ", shard.primary.server, " is gone");
    }
    if (1 + shard.backups.size() < now_.copies) {
      return absl::StrCat("shard ", i, " has ", 1 + shard.backups.size(),
                          " of ", now_.copies,
                          " copies, and needs another server");
    }
  }
  return "the servers' next view; do they run, and reach etcd?";
}

}  // namespace penstock::ps::views
