#include "ps/views/moving.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "ps/etcd/mirror.h"
#include "ps/membership/agreements.h"
#include "ps/membership/members.h"
#include "ps/membership/moves.h"
#include "ps/replication/moves.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_wire.h"
#include "ps/views/view_text.h"
#include "ps/views/view_watch.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {
namespace {

using membership::v1::Move;
using membership::v1::Server;
using replication::ReplicaId;
using replication::ShardReplicas;
using replication::View;

constexpr absl::Duration kRound = absl::Milliseconds(50);
// How long a drain goes on without the server, or with too few others. Servers
// that are started again, or that etcd forgot under load, are back sooner.
constexpr absl::Duration kGiveUp = absl::Seconds(10);
// Longer than the lease of a server in etcd.
constexpr absl::Duration kLease = absl::Seconds(4);
// How long the keepers may need for the next step, so that a rest is an end.
constexpr absl::Duration kRest = absl::Milliseconds(500);
// Limits the attempts to write what servers write, too.
constexpr int kMaxTries = 8;

ReplicaId IdOf(const Server& server) {
  return {server.address(), server.incarnation()};
}

std::string NameOf(const Server& server) {
  return absl::StrCat(server.name(), " (", server.address(), ")");
}

std::string NamesOf(const std::vector<Server>& servers) {
  return absl::StrJoin(servers, ", ", [](std::string* out, const Server& each) {
    absl::StrAppend(out, NameOf(each));
  });
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

// What etcd has at one moment.
struct Situation {
  std::vector<Server> registered;
  absl::optional<View> view;
  std::vector<std::string> places;  // the addresses of the shards' own servers
  std::vector<ReplicaId> live;      // servers with a place
  replication::MoveWishes wishes;
  size_t copies = 1;  // wanted of each shard
};

// A command that moves shards. Has the right to do so while it exists.
class Command {
 public:
  explicit Command(const MovingOptions& options)
      : options_(options),
        limit_(base::SteadyNow() + options.timeout),
        mirror_(options.member->registry()->client(),
                options.member->registry()->prefix()) {}

  // Waits for etcd, and takes the right to move shards.
  absl::Status Begin(Move::Kind kind) {
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

  // Reads the present situation.
  absl::Status Read() {
    const etcd::Values values = mirror_.values();
    const std::string& prefix = options_.member->registry()->prefix();
    auto servers = membership::RegisteredServers(values, prefix);
    if (!servers.ok()) return servers.status();
    now_.registered = *std::move(servers);
    absl::Status status = newest_.Take(values, prefix);
    if (!status.ok()) return status;
    now_.view = newest_.view();
    now_.places = newest_.servers();
    auto wishes = ReadMoveWishes(values, prefix, now_.places);
    if (!wishes.ok()) return wishes.status();
    now_.wishes = *std::move(wishes);
    now_.live.clear();
    for (const Server& server : now_.registered) {
      now_.copies = server.replicas() + 1;
      if (!HasAddress(now_.places, server.address())) continue;
      now_.live.push_back(IdOf(server));
    }
    Report();
    return absl::OkStatus();
  }

  const Situation& now() const { return now_; }
  membership::Registry* registry() { return options_.member->registry(); }

  // Returns the registered server of a name or an address.
  absl::StatusOr<Server> Registered(const std::string& name) const {
    const Server* const found = Find(now_.registered, name);
    if (found != nullptr) return *found;
    return absl::NotFoundError(absl::StrCat(
        "no server ", name, " is registered under ",
        options_.member->registry()->prefix(), " in etcd: ",
        now_.registered.empty() ? "there is none" : NamesOf(now_.registered)));
  }

  absl::Status CheckReplicated() const {
    if (now_.copies > 1) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the servers keep no replicas, so shards cannot move: start the "
        "servers with --replicas");
  }

  // Waits until `is_done` returns true. Calls it each round after Read().
  absl::Status Await(const std::function<absl::StatusOr<bool>()>& is_done) {
    while (true) {
      absl::Status status = Read();
      if (!status.ok()) return status;
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
      absl::SleepFor(kRound);
    }
  }

  // Returns true if nothing has moved for a while, and nothing is to move.
  bool Rests() {
    const bool is_busy =
        !now_.view || !now_.view->number ||
        std::any_of(
            now_.view->shards.begin(), now_.view->shards.end(),
            [this](const ShardReplicas& shard) {
              return !shard.joiners.empty() || !IsLive(shard.primary) ||
                     shard.backups.size() + 1 < CopiesNow() ||
                     !std::all_of(
                         shard.backups.begin(), shard.backups.end(),
                         [this](const ReplicaId& id) { return IsLive(id); });
            }) ||
        NextMove(*now_.view, now_.live, now_.wishes, now_.copies).has_value();
    if (is_busy) last_busy_ = base::SteadyNow();
    return base::SteadyNow() - last_busy_ >= kRest;
  }

  void Say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

 private:
  bool IsLive(const ReplicaId& id) const {
    return replication::Has(now_.live, id);
  }

  // Returns how many copies the usable servers permit.
  size_t CopiesNow() const {
    size_t usable = 0;
    for (const ReplicaId& id : now_.live) {
      usable += replication::Has(now_.wishes.leaving, id) ? 0 : 1;
    }
    return std::min(usable, now_.copies);
  }

  // Names the shards that have changed.
  void Report() {
    const auto& view = now_.view;
    if (!view || (reported_ && reported_->number == view->number)) return;
    for (size_t i = 0; reported_ && i < view->shards.size(); ++i) {
      const bool is_same = i < reported_->shards.size() &&
                           reported_->shards[i] == view->shards[i];
      if (!is_same) Say(TextOfShard(*view, i));
    }
    reported_ = view;
  }

  std::string Waits() const {
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
        return absl::StrCat("shard ", i, ": ", shard.primary.server,
                            " is gone");
      }
      if (1 + shard.backups.size() < now_.copies) {
        return absl::StrCat("shard ", i, " has ", 1 + shard.backups.size(),
                            " of ", now_.copies,
                            " copies, and needs another server");
      }
    }
    return "the servers' next view; do they run, and reach etcd?";
  }

  const MovingOptions options_;
  const absl::Time limit_;
  etcd::Mirror mirror_;
  NewestView newest_;
  Situation now_;
  absl::optional<View> reported_;
  absl::Time last_busy_ = base::SteadyNow();
  std::unique_ptr<membership::Registration> claim_;
};

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
    absl::SleepFor(kRound);
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
absl::StatusOr<std::string> AwaitPlace(Command* command, const Server& server,
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

// Makes a view in which `server` has the place.
absl::Status TakePlace(Command* command, const std::string& place,
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
  Command command(options);
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
  Command command(options);
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
  Command command(options);
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
