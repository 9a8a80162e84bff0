#include "tests/ps/consistency/simulation.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

constexpr int kActs = 250;
constexpr int kFairRounds = 600;
constexpr uint64_t kFairSteps = 5;
constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;

}  // namespace

Simulation::Simulation(uint64_t seed) : dice_(seed) {
  SetOptions();
  coordinator_ = std::make_unique<Coordinator>(*Coordinator::Create(options_));
  model_ = std::make_unique<Model>(options_);
  promised_.resize(options_.policies.size());
  applied_.resize(options_.policies.size());
  unrest_ = static_cast<uint32_t>(std::array{3, 15, 60}[Draw(3)]);
  apply_share_ = Chance(80) ? 20 : 2;
  const uint64_t ranks = 1 + Draw(5);
  workers_.resize(ranks);
  for (uint64_t i = 0; i < ranks; ++i) {
    workers_[i].id.rank = static_cast<uint32_t>(i);
    workers_[i].speed = Chance(25) ? 1 : 8;
  }
  // Sometimes assigns the same rank to two processes.
  if (Chance(10)) workers_.back().id.rank = 0;
}

void Simulation::SetOptions() {
  options_.membership.expected_workers = static_cast<uint32_t>(1 + Draw(4));
  options_.max_wait = absl::Seconds(Chance(50) ? 4 : 20);
  options_.max_held_pulls = 4;
  const size_t policies = 1 + Draw(3);
  for (size_t i = 0; i < policies; ++i) {
    ConsistencyPolicy::Options policy;
    switch (Draw(5)) {
      case 0:
        break;
      case 1:
        policy.backup_workers = static_cast<uint32_t>(1 + Draw(2));
        break;
      case 2:
        policy.staleness = 1;
        break;
      case 3:
        policy.staleness = static_cast<int64_t>(2 + Draw(3));
        break;
      case 4:
        policy.staleness = kUnlimited;
        break;
    }
    options_.policies.push_back(policy);
  }
}

void Simulation::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

std::string Simulation::Run() {
  for (int i = 0; i < kActs && error_.empty(); ++i) Act();
  if (error_.empty()) PlayFair();
  if (error_.empty()) CheckEnd();
  return error_;
}

void Simulation::Act() {
  const uint64_t what = Draw(100);
  if (what < 8) {
    PassTime(Chance(apply_share_ < 10 ? 25 : 5)
                 ? absl::Seconds(15)
                 : absl::Milliseconds(Draw(3000)));
  } else if (what < 8 + apply_share_) {
    FinishApply();
  } else if (what < 30) {
    if (Chance(unrest_)) ActStranger();
  } else {
    Worker* worker = &workers_[Draw(workers_.size())];
    if (Draw(8) < worker->speed) ActWorker(worker);
  }
}

void Simulation::ActWorker(Worker* worker) {
  if (!worker->runs || worker->is_mute) {
    if (Chance(30)) Start(worker);
    return;
  }
  if (!Chance(unrest_)) return Work(worker);
  switch (Draw(14)) {
    case 0:
      Count("worker lost");
      model_->Lost(worker->id);
      Stop(worker);
      return TakeOutcome(coordinator_->Lost(worker->id));
    case 1:
      Count("worker left");
      model_->Leave(worker->id);
      Stop(worker);
      return TakeOutcome(coordinator_->Leave(worker->id));
    case 2:
      Count("worker silent");
      worker->is_mute = true;
      return;
    case 3:
      return Join(worker);
    case 4:
      // Repeats a push that was already answered.
      if (worker->clock > 0) SendPush(worker->id, worker->clock - 1);
      return;
    case 5:
      // Loses the reply: the worker reconnects and repeats the call.
      worker->ticket = 0;
      return;
    case 6:
      if (worker->ticket != 0 && calls_.count(worker->ticket) > 0) {
        Count("cancelled");
        coordinator_->Cancel(worker->ticket);
        calls_.erase(worker->ticket);
      }
      worker->ticket = 0;
      return CheckRest();
    case 7:
      // Pulls the next step's values during the present step.
      SendPull(worker->id, worker->clock + 1, {});
      return;
    case 8:
    case 9: {
      const Verdict expected = model_->Heartbeat(worker->id, now_);
      const Outcome outcome = coordinator_->Heartbeat(worker->id, now_);
      if (outcome.verdict != expected) Fail("heartbeat: another verdict");
      return TakeOutcome(outcome);
    }
    default:
      return Work(worker);
  }
}

void Simulation::Work(Worker* worker) {
  if (worker->ticket != 0) return;
  switch (worker->stage) {
    case Worker::kJoins:
      return Join(worker);
    case Worker::kPulls:
      worker->ticket = next_ticket_;
      SendPull(worker->id, worker->clock, {});
      return;
    case Worker::kComputes:
      worker->stage = Worker::kPushes;
      return;
    case Worker::kPushes:
      worker->ticket = next_ticket_;
      SendPush(worker->id, worker->clock);
      return;
  }
}

// Makes a random call, as a confused or malicious process would.
void Simulation::ActStranger() {
  Worker* victim = &workers_[Draw(workers_.size())];
  WorkerId id = victim->id;
  if (Chance(30)) id.incarnation = 1 + Draw(3);
  if (Chance(10)) id.rank = static_cast<uint32_t>(dice_());
  uint64_t clock = victim->clock + Draw(7);
  if (Chance(10)) clock = dice_() >> Draw(64);
  switch (Draw(6)) {
    case 0:
    case 1:
      SendPush(id, clock);
      return;
    case 2:
      SendPull(id, clock, {Draw(options_.policies.size())});
      return;
    case 3:
      SendPull(absl::nullopt, clock, {Draw(options_.policies.size())});
      return;
    case 4: {
      id.incarnation = 1 + Draw(3);
      const Verdict expected = model_->Heartbeat(id, now_);
      const Outcome outcome = coordinator_->Heartbeat(id, now_);
      if (outcome.verdict != expected) Fail("stranger's heartbeat");
      return TakeOutcome(outcome);
    }
    case 5:
      id.incarnation = 1 + Draw(3);
      model_->Leave(id);
      return TakeOutcome(coordinator_->Leave(id));
  }
}

void Simulation::Start(Worker* worker) {
  worker->id.incarnation = dice_();
  worker->runs = true;
  worker->is_mute = false;
  Join(worker);
}

void Simulation::Join(Worker* worker) {
  const Verdict expected = model_->Join(worker->id, now_);
  const Outcome outcome = coordinator_->Join(worker->id, now_);
  if (outcome.verdict != expected) Fail("join: another verdict");
  if (expected == Verdict::kAccepted) {
    worker->clock = outcome.clock;
    worker->stage = Worker::kPulls;
    worker->ticket = 0;
  } else {
    Stop(worker);
  }
  Count(expected == Verdict::kAccepted ? "joined" : "join refused");
  TakeOutcome(outcome);
}

void Simulation::Stop(Worker* worker) {
  worker->runs = false;
  worker->ticket = 0;
}

uint64_t Simulation::SendPull(const absl::optional<WorkerId>& id,
                              uint64_t clock,
                              const std::vector<size_t>& policies) {
  const uint64_t ticket = next_ticket_++;
  Call call{false, id, clock, policies, now_ + options_.max_wait};
  if (policies.empty()) {
    for (size_t i = 0; i < options_.policies.size(); ++i) {
      call.policies.push_back(i);
    }
  }
  calls_[ticket] = call;
  if (id.has_value()) model_->Hear(*id, now_);
  TakeOutcome(coordinator_->Pull(ticket, id, clock, policies, now_));
  return ticket;
}

uint64_t Simulation::SendPush(const WorkerId& id, uint64_t clock) {
  const uint64_t ticket = next_ticket_++;
  calls_[ticket] = Call{true, id, clock, {}, now_ + options_.max_wait};
  model_->Hear(id, now_);
  expected_ = model_->Push(id, clock);
  sending_ = ticket;
  const Outcome outcome = coordinator_->Push(ticket, id, clock, now_);
  TakeOutcome(outcome);
  if (expected_.has_value() && calls_.count(ticket) > 0) {
    Fail("a push is held and need not be");
  }
  sending_ = 0;
  return ticket;
}

void Simulation::FinishApply() {
  if (applying_.empty()) return;
  const size_t at = Draw(applying_.size());
  const Coordinator::Apply apply = applying_[at];
  applying_.erase(applying_.begin() + static_cast<std::ptrdiff_t>(at));
  for (const PushId& push : apply.pushes) {
    ++applied_[apply.policy][{push.clock, push.rank}];
  }
  model_->Applied(apply.policy);
  TakeOutcome(coordinator_->Applied(apply.policy, now_));
}

void Simulation::PassTime(absl::Duration time) {
  now_ += time;
  model_->Tick(now_);
  TakeOutcome(coordinator_->Tick(now_));
  if (coordinator_->NextDeadline() <= now_) Fail("a deadline stays behind");
}

void Simulation::PlayFair() {
  is_fair_ = true;
  for (Worker& worker : workers_) worker.pushed = 0;
  for (int round = 0; round < kFairRounds && error_.empty(); ++round) {
    bool is_done = true;
    size_t running = 0;
    for (Worker& worker : workers_) {
      if (!worker.runs || worker.is_mute) continue;
      ++running;
      is_done = is_done && worker.pushed >= kFairSteps;
    }
    if (running == 0) {
      Start(&workers_[0]);
      continue;
    }
    if (is_done) return;
    for (Worker& worker : workers_) {
      if (!worker.runs || worker.is_mute) continue;
      model_->Heartbeat(worker.id, now_);
      const Outcome outcome = coordinator_->Heartbeat(worker.id, now_);
      TakeOutcome(outcome);
      if (outcome.verdict != Verdict::kAccepted) Stop(&worker);
      if (worker.runs && Draw(8) < worker.speed) Work(&worker);
    }
    if (Chance(70)) FinishApply();
    if (Chance(30)) PassTime(absl::Milliseconds(Draw(2000)));
  }
  if (error_.empty()) {
    Fail(absl::StrCat("the run has stopped: a pull for ", workers_[0].clock,
                      " ", coordinator_->Explain(workers_[0].clock, {0})));
  }
}

}  // namespace penstock::ps
