#include "ps/views/moving.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "ps/membership/agreements.h"
#include "ps/membership/members.h"
#include "ps/membership/moves.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_wire.h"
#include "ps/views/move_command.h"
#include "ps/views/view_text.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {
namespace {

using membership::v1::Move;
using membership::v1::Server;
using replication::ReplicaId;

constexpr absl::Duration kPause = absl::Milliseconds(50);
// How long a drain goes on without the server, or with too few others. Servers
// that are started again, or that etcd forgot under load, are back sooner.
constexpr absl::Duration kGiveUp = absl::Seconds(10);
// Longer than the lease of a server in etcd.
constexpr absl::Duration kLease = absl::Seconds(4);
// Limits the attempts to write what servers write, too.
constexpr int kMaxTries = 8;

absl::Status CheckEnoughStay(const Situation& now, const Server& server) {
  size_t stay = 0;
  for (const ReplicaId& id : now.live) {
    const bool leaves =
        id == IdOf(server) || replication::Has(now.wishes.leaving, id);
    stay += leaves ? 0 : 1;
  }
  if (stay >= now.copies) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "without ", NameOf(server), ", ", stay, " servers would be left for the ",
      now.copies, " copies of each shard: start another server first"));
}

// Repeats a write that servers have outrun.
absl::Status Insist(const std::function<absl::Status()>& write) {
  absl::Status status;
  for (int i = 0; i < kMaxTries; ++i) {
    status = write();
    if (!absl::IsAborted(status)) return status;
    absl::SleepFor(kPause);
  }
  return status;
}

// Returns the place that a new server takes.
absl::StatusOr<std::string> PlaceFor(const Situation& now, const Server& server,
                                     const std::string& instead_of) {
  std::vector<std::string> gone;
  for (const std::string& place : now.places) {
    if (Find(now.registered, place) == nullptr) gone.push_back(place);
  }
  if (!instead_of.empty()) {
    if (HasAddress(gone, instead_of)) return instead_of;
    return absl::FailedPreconditionError(absl::StrCat(
        instead_of,
        HasAddress(now.places, instead_of)
            ? " is registered, and keeps its place: drain and stop it first"
            : " is no server of this training",
        "; gone are: ", gone.empty() ? "none" : absl::StrJoin(gone, ", ")));
  }
  if (gone.size() == 1) return gone.front();
  return absl::FailedPreconditionError(
      gone.empty()
          ? absl::StrCat("no server is gone whose place ", NameOf(server),
                         " could take. A training keeps its number of servers")
          : absl::StrCat(
                "several servers are gone: ", absl::StrJoin(gone, ", "),
                ". Say which place is meant"));
}

// Waits for the place: a server that was killed has a lease for some seconds.
absl::StatusOr<std::string> AwaitPlace(MoveCommand* command,
                                       const Server& server,
                                       const std::string& instead_of) {
  const absl::Time limit = base::SteadyNow() + kLease;
  absl::StatusOr<std::string> place;
  absl::Status status = command->Await([&]() -> absl::StatusOr<bool> {
    place = PlaceFor(command->now(), server, instead_of);
    return place.ok() || base::SteadyNow() >= limit;
  });
  if (!status.ok()) return status;
  return place;
}

// Checks that a new server was started with the flags of the others. Keepers
// make no view while two servers disagree.
absl::Status CheckAgrees(const Situation& now, const Server& server) {
  std::vector<Server> servers = {server};
  for (const Server& each : now.registered) {
    if (HasAddress(now.places, each.address())) servers.push_back(each);
  }
  return membership::CheckAgreement(servers);
}

// Makes a view in which `server` has the place.
absl::Status TakePlace(MoveCommand* command, const std::string& place,
                       const Server& server) {
  return Insist([&]() -> absl::Status {
    const auto view = membership::ReadView(command->registry());
    if (!view.ok()) return view.status();
    if (!view->has_value()) return absl::AbortedError("there is no view");
    membership::v1::View next = **view;
    auto decision = replication::FromBytes(next.decision());
    if (!decision.ok()) return decision.status();
    next.set_number(++decision->number);
    next.set_decision(replication::ToBytes(*decision));
    for (std::string& each : *next.mutable_servers()) {
      if (each == place) each = server.address();
    }
    return membership::AdvanceView(command->registry(), next);
  });
}

}  // namespace

absl::Status DrainServer(const MovingOptions& options,
                         const std::string& server) {
  MoveCommand command(options);
  absl::Status status = command.Begin(Move::DRAIN);
  if (!status.ok()) return status;
  const auto leaves = command.Registered(server);
  if (!leaves.ok()) return leaves.status();
  status = command.CheckReplicated();
  if (!status.ok()) return status;
  const ReplicaId id = IdOf(*leaves);
  const auto holds_nothing = [&] {
    const auto& view = command.now().view;
    return !view || replication::PartsOf(*view, id) == 0;
  };
  if (!holds_nothing()) {
    status = CheckEnoughStay(command.now(), *leaves);
    if (!status.ok()) return status;
  }
  const auto mark = [&] {
    return membership::MarkLeaving(command.registry(), leaves->name());
  };
  status = Insist(mark);
  if (!status.ok()) return status;
  absl::Time last_good = base::SteadyNow();
  status = command.Await([&]() -> absl::StatusOr<bool> {
    if (holds_nothing()) return true;
    absl::Status flaw = CheckEnoughStay(command.now(), *leaves);
    const Server* const now = Find(command.now().registered, leaves->name());
    if (now == nullptr || IdOf(*now) != id) {
      flaw = absl::AbortedError(absl::StrCat(
          NameOf(*leaves),
          " has ended, or lost etcd, before it held nothing: backups take "
          "over. Look at penstock ps status"));
    } else if (!replication::Has(command.now().wishes.leaving, id)) {
      mark().IgnoreError();  // the server has registered anew
    }
    if (flaw.ok()) last_good = base::SteadyNow();
    if (base::SteadyNow() - last_good > kGiveUp) return flaw;
    return false;
  });
  if (!status.ok()) {
    membership::UnmarkLeaving(command.registry(), leaves->name()).IgnoreError();
  }
  return status;
}

absl::Status Rebalance(const MovingOptions& options) {
  MoveCommand command(options);
  absl::Status status = command.Begin(Move::REBALANCE);
  if (status.ok()) status = command.CheckReplicated();
  if (!status.ok()) return status;
  if (!command.now().view) {
    return absl::FailedPreconditionError(
        "there are no shards yet: worker 0 has to define a model first");
  }
  status = command.Await([&]() -> absl::StatusOr<bool> {
    return command.now().wishes.to_own_servers && command.Rests();
  });
  if (!status.ok()) return status;
  const Situation& now = command.now();
  for (size_t i = 0; i < now.view->shards.size(); ++i) {
    if (now.view->shards[i].primary.server == now.places[i]) continue;
    command.Say(absl::StrCat(TextOfShard(*now.view, i), ": its own server, ",
                             now.places[i], ", is gone or leaves"));
  }
  return absl::OkStatus();
}

absl::Status AddServer(const MovingOptions& options, const std::string& server,
                       const std::string& instead_of) {
  MoveCommand command(options);
  absl::Status status = command.Begin(Move::ADD);
  if (!status.ok()) return status;
  const auto added = command.Registered(server);
  if (!added.ok()) return added.status();
  status = command.CheckReplicated();
  if (!status.ok()) return status;
  if (!command.now().view) return absl::OkStatus();  // all will have a part
  if (HasAddress(command.now().places, added->address())) {
    status = Insist([&] {
      return membership::UnmarkLeaving(command.registry(), added->name());
    });
  } else {
    const auto place = AwaitPlace(&command, *added, instead_of);
    if (!place.ok()) return place.status();
    status = CheckAgrees(command.now(), *added);
    if (!status.ok()) return status;
    command.Say(absl::StrCat(NameOf(*added), " takes the place of ", *place));
    status = TakePlace(&command, *place, *added);
  }
  if (!status.ok()) return status;
  return command.Await([&]() -> absl::StatusOr<bool> {
    return replication::Has(command.now().live, IdOf(*added)) &&
           !replication::Has(command.now().wishes.leaving, IdOf(*added)) &&
           command.Rests();
  });
}

}  // namespace penstock::ps::views
