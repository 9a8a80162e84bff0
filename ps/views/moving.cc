#include "ps/views/moving.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
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

// Returns the address that a new server takes over from a server that is gone.
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
          : absl::StrCat("several servers are gone: ",
                         absl::StrJoin(gone, ", "), ". Name the place"));
}

// Returns an error if a server that takes part already is to replace another.
absl::Status CheckReplacesNone(const Situation& now, const Server& server,
                               const std::string& instead_of) {
  if (instead_of.empty() || instead_of == server.address()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      NameOf(server), " takes part already, and ",
      HasAddress(now.places, instead_of)
          ? absl::StrCat("so does ", instead_of, ": it cannot take both places")
          : absl::StrCat(instead_of,
                         " does not: add the server without naming a place")));
}

// Returns true if the view has no replica at the address.
bool HoldsNothing(const Situation& now, const std::string& address) {
  const auto is_there = [&](const ReplicaId& id) {
    return id.server == address;
  };
  return std::none_of(now.view->shards.begin(), now.view->shards.end(),
                      [&](const replication::ShardReplicas& shard) {
                        return is_there(shard.primary) ||
                               absl::c_any_of(shard.backups, is_there) ||
                               absl::c_any_of(shard.joiners, is_there);
                      });
}

// Returns an error if the address `place`, whose server is gone, cannot be
// given to a new server.
absl::Status CheckIsFree(const Situation& now, const std::string& place) {
  const auto last = ShardWithoutOther(now, place);
  if (last) {
    return absl::FailedPreconditionError(absl::StrCat(
        place, " has the last copy of shard ", *last,
        ", and is not registered: it may come back as it was. If it never "
        "does, restart all servers from a checkpoint"));
  }
  if (HoldsNothing(now, place)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      place, " has replicas in view ", now.view->number,
      ", although it is not registered: do the other servers reach etcd?"));
}

// Waits until the server to replace has been missing for `gone_after`. Until
// then, a server that etcd has just forgotten can register again.
absl::StatusOr<std::string> AwaitPlace(MoveCommand* command,
                                       const Server& server,
                                       const std::string& instead_of,
                                       absl::Duration gone_after) {
  absl::Time since = base::SteadyNow();
  absl::StatusOr<std::string> place;
  absl::Status status = command->Await([&]() -> absl::StatusOr<bool> {
    auto now = PlaceFor(command->now(), server, instead_of);
    const bool is_same =
        now.ok() == place.ok() && (!now.ok() || *now == *place);
    place = std::move(now);
    if (!is_same || !command->SeesEtcd()) since = base::SteadyNow();
    return base::SteadyNow() - since >= gone_after;
  });
  if (status.ok() && place.ok()) status = CheckIsFree(command->now(), *place);
  if (!status.ok()) return status;
  return place;
}

// Checks that a new server was started with the same flags as the others. While
// servers disagree, the keepers make no view.
absl::Status CheckAgrees(const Situation& now, const Server& server) {
  std::vector<Server> servers = {server};
  for (const Server& each : now.registered) {
    if (HasAddress(now.places, each.address())) servers.push_back(each);
  }
  return membership::CheckAgreement(servers);
}

// Makes a view in which `server` replaces the server that is gone.
absl::Status TakePlace(MoveCommand* command, const std::string& place,
                       const Server& server) {
  return command->RetryWrite([&]() -> absl::Status {
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
    return membership::AdvanceView(command->registry(), next, command->claim());
  });
}

}  // namespace

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
    return command.now().requests.to_own_servers && command.Rests();
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
  const auto unmark = [&] {
    return membership::UnmarkLeaving(command.registry(), *added,
                                     command.claim());
  };
  // Does nothing before the first view, because all servers will be in it.
  if (!command.now().view) return command.RetryWrite(unmark);
  if (HasAddress(command.now().places, added->address())) {
    status = CheckReplacesNone(command.now(), *added, instead_of);
    if (!status.ok()) return status;
    status = command.RetryWrite(unmark);
  } else {
    const auto place =
        AwaitPlace(&command, *added, instead_of, options.gone_after);
    if (!place.ok()) return place.status();
    status = CheckAgrees(command.now(), *added);
    if (!status.ok()) return status;
    status = command.RetryWrite(unmark);  // a spare may have been drained
    if (!status.ok()) return status;
    command.Say(absl::StrCat(NameOf(*added), " takes the place of ", *place));
    status = TakePlace(&command, *place, *added);
  }
  if (!status.ok()) return status;
  return command.Await([&]() -> absl::StatusOr<bool> {
    return replication::Has(command.now().live, IdOf(*added)) &&
           !replication::Has(command.now().requests.leaving, IdOf(*added)) &&
           command.Rests();
  });
}

}  // namespace penstock::ps::views
