#include "tests/ps/replication/simulation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

constexpr int kEvents = 4000;
constexpr uint64_t kFairPushes = 3;
// Limits the time of a part without faults, which takes a few leases, waits and
// snapshots. With clocks at half speed, all of these take twice as long.
constexpr absl::Duration kFairTime = absl::Seconds(200);

}  // namespace

Simulation::Simulation(uint64_t seed)
    : world_(seed),
      ledger_(&world_),
      fault_rate_(std::array<uint64_t, 3>{1, 5, 20}[world_.dice().Below(3)]),
      staleness_(world_.dice().Chance(50) ? world_.dice().Below(4) : 1000000) {
  Dice& dice = world_.dice();
  options_.group = {1, 2, "build", 0};
  options_.max_log_bytes = dice.Chance(30) ? 4000 : 1 << 20;
  options_.max_message_bytes = 1 + dice.Below(2000);
  options_.max_lag_bytes = dice.Below(3000);
  workers_.resize(1 + dice.Below(4));
  if (dice.Chance(30)) step_.ranks = static_cast<uint32_t>(workers_.size());
  const size_t servers = 1 + dice.Below(5);
  const Node::Start start =
      dice.Chance(50) ? Node::Start::kWithValues : Node::Start::kEmpty;
  std::vector<ReplicaId> ids;
  for (size_t i = 0; i < servers; ++i) {
    ids.push_back({absl::StrCat("server-", i), next_incarnation_++});
    hosts_.push_back({ids[i].server, nullptr});
    hosts_[i].node = MakeNode(ids[i], i == 0 ? Node::Start::kLeads : start);
  }
  owner_ = std::make_unique<Owner>(
      &world_,
      Owner::Hooks{[this] { return Servers(); },
                   [this](const auto& view) { Announce(view); }},
      ids, dice.Below(std::min<size_t>(servers, 4)));
  for (const ReplicaId& id : ids) StartTimers(id.server);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) StartWorker(rank);
}

std::shared_ptr<Node> Simulation::MakeNode(const ReplicaId& id,
                                           Node::Start start) {
  Options options = options_;
  options.self = id;
  Node::Hooks hooks;
  const std::string name = id.server;
  hooks.send = [this, name](const std::string& to,
                            std::function<void(Node*)> event) {
    Send(name, to, std::move(event));
  };
  hooks.reply = [this, name](const std::string& to, const Reply& reply) {
    SendReply(name, to, reply);
  };
  hooks.propose = [this, name](uint64_t view, const ReplicaId& joiner) {
    world_.Send(name, "owner", [=] { owner_->OnProposal(view, joiner); });
  };
  hooks.complain = [this, name](uint64_t view, const ReplicaId& replica) {
    world_.Send(name, "owner", [=] { owner_->OnComplaint(view, replica); });
  };
  hooks.check_answer = [this](Node* node, uint64_t seq) {
    CheckAnswer(node, seq);
  };
  return std::make_shared<Node>(&world_, &ledger_, std::move(hooks), options,
                                step_, start);
}

Simulation::Host* Simulation::At(const std::string& name) {
  for (Host& host : hosts_) {
    if (host.name == name) return &host;
  }
  return nullptr;
}

std::vector<ReplicaId> Simulation::Servers() const {
  std::vector<ReplicaId> live;
  for (const Host& host : hosts_) {
    if (host.node != nullptr) live.push_back(host.node->id());
  }
  return live;
}

void Simulation::Deliver(const std::string& name,
                         std::function<void(Node*)> event) {
  Host* host = At(name);
  if (host->node == nullptr) return;
  if (world_.now() < host->frozen_until) {
    return world_.After(host->frozen_until - world_.now(),
                        [=] { Deliver(name, event); });
  }
  // Holds the node, because an event may end the process.
  const std::shared_ptr<Node> node = host->node;
  event(node.get());
  node->CheckBounds();
}

void Simulation::Send(const std::string& from, const std::string& to,
                      std::function<void(Node*)> event) {
  world_.Send(from, to, [=] { Deliver(to, event); });
}

void Simulation::StartTimers(const std::string& name) {
  const Host* host = At(name);
  if (host->node == nullptr) return;
  const absl::Duration period = host->node->clock().Real(
      absl::Milliseconds(300 + world_.dice().Below(300)));
  const uint64_t incarnation = host->node->id().incarnation;
  world_.After(period, [=] {
    Deliver(name, [=](Node* node) {
      if (node->id().incarnation != incarnation) return;
      node->OnTimer();
      if (world_.dice().Chance(50)) node->OnApply();
      StartTimers(name);
    });
  });
}

void Simulation::StartWorker(uint32_t rank) {
  const uint64_t incarnation = next_incarnation_++;
  Worker::Hooks hooks;
  const size_t at = workers_[rank].size();
  hooks.send = [=](const Call& call) { SendCall(*workers_[rank][at], call); };
  hooks.may_push = [this](uint64_t clock) { return MayPush(clock); };
  hooks.has_two_rivals = [=] { return workers_[rank].size() > 2; };
  workers_[rank].push_back(
      std::make_shared<Worker>(&world_, &ledger_, std::move(hooks), rank,
                               incarnation, options_.max_log_bytes / 4));
}

bool Simulation::MayPush(uint64_t clock) const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const auto& rank) {
    return clock <= rank.back()->clock() + staleness_;
  });
}

void Simulation::SendCall(const Worker& worker, const Call& call) {
  // Sends to the primary of the view that the worker knows, which may be old.
  std::string to = owner_->shard().primary.server;
  if (world_.dice().Chance(world_.is_fair() ? 0 : 20)) {
    to = hosts_[world_.dice().Below(hosts_.size())].name;
  }
  Send(worker.name(), to, [call](Node* node) { node->OnCall(call); });
}

void Simulation::SendReply(const std::string& from, const std::string& to,
                           const Reply& reply) {
  world_.Send(from, to, [=] {
    for (const auto& rank : workers_) {
      for (const auto& worker : rank) {
        if (worker->name() == to) worker->OnReply(reply);
      }
    }
  });
}

void Simulation::Announce(const std::shared_ptr<const View>& view) {
  for (const Host& host : hosts_) {
    Send("owner", host.name, [view](Node* node) { node->OnView(view); });
  }
}

void Simulation::CheckAnswer(Node* node, uint64_t seq) {
  for (const Host& host : hosts_) {
    const bool is_rival = host.node != nullptr && host.node.get() != node &&
                          world_.now() >= host.frozen_until &&
                          host.node->MayAnswer();
    if (is_rival && !world_.has_wild_clocks()) {
      world_.Fail(absl::StrCat(TextOf(node->id()), " and ",
                               TextOf(host.node->id()),
                               " acknowledge at the same time"));
    }
  }
  if (seq == 0) return;
  const absl::optional<uint64_t> logged =
      node->replica().holdings().log.ViewAt(seq);
  const uint64_t view = logged.value_or(ledger_.ViewOf(seq));
  std::vector<ReplicaId> heirs = owner_->shard().backups;
  heirs.push_back(owner_->shard().primary);
  for (const ReplicaId& heir : heirs) {
    const Host* host = At(heir.server);
    if (host->node == nullptr || host->node->id() != heir) continue;
    if (host->node->HoldsEntry(seq, view)) continue;
    world_.Fail(absl::StrCat(TextOf(node->id()), " acknowledges entry ", seq,
                             ", and ", TextOf(heir), " does not hold it"));
  }
}

std::string Simulation::Run() {
  Announce(owner_->view());
  for (int i = 0; i < kEvents && world_.error().empty(); ++i) {
    if (world_.dice().Below(1000) < fault_rate_) Fault();
    const uint64_t what = world_.dice().Below(20);
    if (what == 0) {
      owner_->Act();
    } else if (what < 6) {
      const auto& rank = workers_[world_.dice().Below(workers_.size())];
      rank[world_.dice().Below(rank.size())]->Act();
    }
    world_.RunOne();
  }
  if (world_.error().empty()) PlayFair();
  if (world_.error().empty()) ledger_.CheckEnd();
  return world_.error();
}

void Simulation::PlayFair() {
  world_.EndFaults();
  for (Host& host : hosts_) {
    host.frozen_until = absl::InfinitePast();
    if (host.node == nullptr) Restart(&host);
  }
  for (const auto& rank : workers_) {
    fair_goals_.push_back(rank.back()->pushed() + kFairPushes);
  }
  const absl::Time end = world_.now() + kFairTime;
  absl::Time next = world_.now();
  while (world_.error().empty() && !IsOver()) {
    if (world_.now() > end) {
      return world_.Fail(absl::StrCat("does not go on: ", WhyNotOver()));
    }
    if (world_.now() >= next) {
      next = world_.now() + absl::Milliseconds(100);
      owner_->Act();
      ActWorkers();
    }
    world_.RunOne();
  }
}

void Simulation::ActWorkers() {
  if (HavePushed()) return;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].back()->is_over()) {
      // Starts the worker again, because a late call of an earlier process has
      // taken the rank.
      StartWorker(rank);
      fair_goals_[rank] = kFairPushes;
    }
    workers_[rank].back()->Act();
  }
}

}  // namespace penstock::ps::replication
