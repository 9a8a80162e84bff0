#include "ps/views/keeping.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/membership/moves.h"
#include "ps/membership/registration.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_wire.h"
#include "ps/views/view_text.h"

namespace penstock::ps::views {
namespace {

using replication::ReplicaId;
using replication::ShardReplicas;
using replication::View;
using replication::ViewKeeper;

// Adds the incarnations of the servers that have a replica in the view.
void AddIncarnations(const View& view, membership::v1::View* proposal) {
  std::map<std::string, uint64_t> incarnations;
  for (const ShardReplicas& shard : view.shards) {
    incarnations[shard.primary.server] = shard.primary.incarnation;
    for (const auto* all : {&shard.backups, &shard.joiners}) {
      for (const ReplicaId& id : *all) incarnations[id.server] = id.incarnation;
    }
  }
  for (const std::string& server : proposal->servers()) {
    proposal->add_incarnations(incarnations[server]);
  }
}

// Returns true if each replica of the view is in `live`.
bool AreAllIn(const std::vector<ReplicaId>& live, const View& view) {
  const auto lives = [&](const ReplicaId& id) {
    return replication::Has(live, id);
  };
  return std::all_of(
      view.shards.begin(), view.shards.end(), [&](const ShardReplicas& shard) {
        return lives(shard.primary) &&
               std::all_of(shard.backups.begin(), shard.backups.end(), lives) &&
               std::all_of(shard.joiners.begin(), shard.joiners.end(), lives);
      });
}

}  // namespace

Keeping::Keeping(const Options& options)
    : options_(options),
      keeper_({options.follower->self(), options.backups}),
      mirror_(std::make_unique<etcd::Mirror>(
          options.member->registry()->client(),
          options.member->registry()->prefix(), [this] { Wake(); })),
      proposer_(std::make_unique<Proposer>(options.member, [this] { Wake(); })),
      thread_([this] { ThreadLoop(); }) {}

Keeping::~Keeping() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    changed_.Signal();
  }
  thread_.join();
  proposer_ = nullptr;
  mirror_ = nullptr;
}

void Keeping::Wake() {
  absl::MutexLock lock(&mu_);
  is_changed_ = true;
  changed_.Signal();
}

void Keeping::ThreadLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const absl::Time next = base::SteadyNow() + options_.round;
      while (!stop_ && !is_changed_ && base::SteadyNow() < next) {
        changed_.WaitUntil(&mu_, next);
      }
      if (stop_) return;
      is_changed_ = false;
    }
    Round();
  }
}

void Keeping::Warn(absl::string_view what, const absl::Status& status) {
  const std::string line = absl::StrCat(what, ": ", status.message());
  if (!warnings_.IsNews(line, base::SteadyNow())) return;
  if (options_.log) options_.log(line);
}

void Keeping::Round() {
  const etcd::Values values = mirror_->values();
  const bool is_connected = mirror_->status().ok();
  Follow(values);
  MoveReplicas();
  const std::string& prefix = options_.member->registry()->prefix();
  const auto registered = ReadRegistered(values, prefix, Places());
  if (!registered.ok()) return Warn("views", registered.status());
  NameStrangers(registered->strangers);
  const auto moves = ReadMoveRequests(values, prefix, newest_.servers());
  if (!moves.ok()) Warn("views", moves.status());
  const absl::Time now = base::SteadyNow();
  ViewKeeper::Knowledge knowledge;
  knowledge.view = newest_.view();
  knowledge.live = registered->live;
  knowledge.are_all_live = registered->are_all;
  knowledge.sees_deaths = is_connected && SeesDeaths(registered->live, now);
  knowledge.run = options_.follower->run();
  knowledge.requests = options_.follower->Requests();
  if (moves.ok()) knowledge.moves = *moves;
  Publish(knowledge);
  const absl::Status refused = proposer_->TakeError();
  if (!refused.ok()) Warn("views", refused);
  if (!is_connected || !options_.member->registration()->status().ok()) return;
  if (proposer_->is_busy()) return;
  WarnOfLeaving(knowledge);
  const auto next = keeper_.Next(knowledge, now);
  if (next) {
    Propose(*next, knowledge.live, membership::RevisionOfMarks(values, prefix));
  }
}

std::vector<std::string> Keeping::Places() const {
  const auto& view = newest_.view();
  const auto run = options_.follower->run();
  if (!view || (run && *run != view->run)) return {};
  return newest_.servers();
}

void Keeping::NameStrangers(const std::vector<ReplicaId>& strangers) {
  if (strangers.empty()) return;
  const auto append = [](std::string* out, const ReplicaId& server) {
    absl::StrAppend(out, TextOf(server));
  };
  Warn(absl::StrCat("no shard for ", absl::StrJoin(strangers, ", ", append)),
       absl::FailedPreconditionError(
           "another address than those of this training's servers: start each "
           "at its former address, or let it take the place of a server that "
           "is gone, by penstock ps add"));
}

void Keeping::WarnOfLeaving(const ViewKeeper::Knowledge& knowledge) {
  const bool begins = !knowledge.view ||
                      (knowledge.run && *knowledge.run != knowledge.view->run);
  if (!begins) return;
  std::vector<std::string> drained;
  for (const ReplicaId& server : knowledge.live) {
    if (!replication::Has(knowledge.moves.leaving, server)) continue;
    drained.push_back(TextOf(server));
  }
  if (drained.empty()) return;
  Warn(absl::StrCat("drained ", absl::StrJoin(drained, ", ")),
       absl::FailedPreconditionError(
           "the training does not begin without drained servers: start each "
           "again, or let it take part by penstock ps add"));
}

void Keeping::Follow(const etcd::Values& values) {
  absl::Status status =
      newest_.Take(values, options_.member->registry()->prefix());
  if (!status.ok()) Warn("views", status);
}

void Keeping::MoveReplicas() {
  const auto& view = newest_.view();
  if (!view || view->number == followed_) return;
  absl::Status status = options_.follower->OnView(*view);
  if (!status.ok()) return Warn(TextOf(*view), status);
  followed_ = view->number;
  if (options_.log) options_.log(TextOf(*view));
}

bool Keeping::SeesDeaths(const std::vector<ReplicaId>& live, absl::Time now) {
  const bool is_registered = options_.member->registration()->status().ok() &&
                             std::find(live.begin(), live.end(),
                                       options_.follower->self()) != live.end();
  if (!is_registered) {
    registered_since_ = absl::nullopt;
    return false;
  }
  if (!registered_since_) registered_since_ = now;
  // Ends the wait, because no replica of the view is about to register.
  const auto& view = newest_.view();
  if (view && AreAllIn(live, *view)) registered_since_ = absl::InfinitePast();
  return now - *registered_since_ >= options_.settle;
}

void Keeping::Propose(const View& next, const std::vector<ReplicaId>& live,
                      int64_t marks) {
  membership::v1::View proposal;
  proposal.set_number(next.number);
  proposal.set_decision(replication::ToBytes(next));
  const bool is_first = !newest_.view() || newest_.view()->run != next.run;
  if (is_first) {
    for (const ReplicaId& server : live) proposal.add_servers(server.server);
  } else {
    proposal.mutable_servers()->Assign(newest_.servers().begin(),
                                       newest_.servers().end());
  }
  AddIncarnations(next, &proposal);
  proposer_->Propose(std::move(proposal), marks);
}

void Keeping::Publish(const ViewKeeper::Knowledge& knowledge) {
  Known known;
  known.view = newest_.view();
  known.servers = newest_.servers();
  for (const auto& [shard, primary] : replication::LostShards(knowledge)) {
    known.lost.push_back(shard);
    Warn(absl::StrCat("shard ", shard),
         absl::DataLossError(absl::StrCat(
             TextOf(primary),
             " is gone, and all its backups are: restart all servers from a "
             "checkpoint, unless that server comes back as it was")));
  }
  known.etcd_failure = std::string(EtcdStatus().message());
  options_.board->Set(std::move(known));
}

absl::Status Keeping::EtcdStatus() const {
  absl::Status status = options_.member->registration()->status();
  if (status.ok()) status = mirror_->status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;  // not read yet
}

}  // namespace penstock::ps::views
