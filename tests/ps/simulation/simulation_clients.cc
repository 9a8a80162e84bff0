// The clients of a simulation.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/ps/simulation/simulation.h"

namespace penstock::ps {
namespace {

constexpr const char* kNames[] = {"-",    "join",  "initialize", "pull",
                                  "push", "leave", "reattach"};

std::string NameOf(Trainer::Call call) {
  return kNames[static_cast<size_t>(call)];
}

// Returns true if the error of a worker or a chief asks for a restart of the
// servers. A restart after every error would stop a training that can continue.
bool AsksForServers(const absl::Status& status) {
  return absl::StrContains(status.message(), "start all servers");
}
// Returns true if a chief's error shows that servers have wrong flags.
bool AreServersWrong(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) &&
         !absl::StrContains(status.message(), "has to define one");
}

}  // namespace

// Adds the calls that may begin now. Workers begin only in a training, and the
// chief only without one, because other calls have no effect.
void Simulation::AddCalls(Actions* actions) {
  const bool is_defined = servers_.CommonLife().has_value();
  if (!is_defined && chief_ == nullptr && servers_.all_up()) {
    actions->push_back([this] { StartChief(); });
  }
  if (!is_fair_ && is_defined && dice_.Chance(20)) {
    actions->push_back([this] { StartSaver(); });
  }
  if (!is_fair_ && (!servers_.all_up() || needs_restart_) && dice_.Chance(20)) {
    actions->push_back([this] {
      if (!servers_.all_up() && dice_.Chance(40)) return RestartOne();
      RestartAll(servers_.size(), dice_.Chance(80));
    });
  }
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (trainers_[rank] == nullptr && is_defined) {
      actions->push_back([this, rank] {
        trainers_[rank] = std::make_unique<Trainer>(&mail_, ++clients_,
                                                    servers_.size(), rank);
        DoNext(trainers_[rank].get());
      });
    } else if (trainers_[rank] != nullptr && trainers_[rank]->is_suspended()) {
      if (!dice_.Chance(10)) continue;
      actions->push_back([this, rank] {
        Say(absl::StrCat("worker ", rank, " goes on"));
        trainers_[rank]->Resume();
      });
    } else if (trainers_[rank] != nullptr && !trainers_[rank]->is_busy()) {
      actions->push_back([this, rank] { DoNext(trainers_[rank].get()); });
    }
  }
}

void Simulation::DoNext(Trainer* trainer) {
  const bool leaves = !is_fair_ && trainer->has_joined() && dice_.Chance(3);
  switch (leaves ? Trainer::Call::kLeave : trainer->call()) {
    case Trainer::Call::kNone:
      trainer->StartJoin();
      break;
    case Trainer::Call::kJoin:
      if (trainer->rank() == 0) {
        trainer->StartInitialize(staleness_.size());
        break;
      }
      [[fallthrough]];
    case Trainer::Call::kInitialize:
    case Trainer::Call::kReattach:
    case Trainer::Call::kPush:
      if (!is_fair_ && dice_.Chance(10)) {
        StartPush(trainer);
      } else {
        trainer->StartPull();
      }
      break;
    case Trainer::Call::kPull:
      StartPush(trainer);
      break;
    case Trainer::Call::kLeave:
      trainer->StartLeave();
      break;
  }
  Say(absl::StrCat("worker ", trainer->rank(), " (", trainer->id(), ") begins ",
                   NameOf(trainer->call()), " of step ", trainer->step()));
}

void Simulation::StartPush(Trainer* trainer) {
  const TrainingConnection& connection = trainer->connection();
  Push& push = ledger_.NewPush(trainer->rank(), trainer->incarnation(),
                               connection.run());
  push.rows = IdsOf(connection, staleness_.size(), push.number);
  trainer->StartPush(push);
}

void Simulation::StartChief() {
  if (chief_ != nullptr) return;
  chief_ = std::make_unique<Chief>(&mail_, ++clients_, servers_.size());
  Say(absl::StrCat("chief ", chief_->id(), " defines"));
  chief_->StartDefine(model_);
}

void Simulation::StartSaver() {
  const size_t at = dice_.Below(2);
  const absl::optional<Life> life = servers_.CommonLife();
  if (savers_[at] != nullptr || !life.has_value()) return;
  savers_[at] = std::make_unique<Saver>(&mail_, ++clients_, servers_.size());
  const bool incremental = dice_.Chance(50);
  const uint64_t keep = dice_.Below(4);
  Say(absl::StrCat("saver ", clients_, " takes a checkpoint",
                   incremental ? ", incremental" : "", ", keeps ", keep));
  savers_[at]->StartSave(incremental, keep, ledger_.SettledIn(life->run));
}

// Destroys the clients whose calls have ended. Other clients stay, because
// their destructors would block.
void Simulation::BuryClients() {
  AwaitThreads();
  if (mail_.ReturnCancelled()) return;
  for (auto client = ending_.begin(); client != ending_.end();) {
    const bool has_ended =
        !(*client)->is_busy() && !mail_.HasOpen((*client)->id());
    client = has_ended ? ending_.erase(client) : client + 1;
  }
}

bool Simulation::TakeResults() {
  bool has_news = false;
  if (chief_ != nullptr && chief_->has_result()) {
    has_news = true;
    const absl::Status status = chief_->TakeResult();
    chief_ = nullptr;
    OnDefined(status);
  }
  for (auto& saver : savers_) {
    if (saver == nullptr || !saver->has_result()) continue;
    has_news = true;
    const absl::Status status = saver->TakeResult();
    saver = nullptr;
    OnSaved(status);
  }
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    if (trainers_[rank] == nullptr || !trainers_[rank]->has_result()) continue;
    has_news = true;
    OnTrainer(rank, trainers_[rank]->TakeResult());
  }
  return has_news;
}

void Simulation::OnDefined(const absl::Status& status) {
  Say(absl::StrCat("the chief has ", status.ToString()));
  witness_.Observe();
  if (absl::IsFailedPrecondition(status) || absl::IsDataLoss(status) ||
      absl::IsAborted(status)) {
    ++tally_.refusals;
    needs_restart_ |= AreServersWrong(status) || AsksForServers(status);
    if (!absl::StrContains(status.message(), "server")) {
      Blame({absl::StrCat("a refusal names no server: ", status.ToString())});
    }
  }
}

void Simulation::OnSaved(const absl::Status& status) {
  Say(absl::StrCat("the saver has ", status.ToString()));
  saved_ = status;
}

void Simulation::OnTrainer(uint32_t rank, const absl::Status& status) {
  Trainer* const trainer = trainers_[rank].get();
  if (trainer->call() == Trainer::Call::kLeave) {
    trainers_[rank] = nullptr;
    return;
  }
  if (!status.ok()) {
    Say(absl::StrCat("worker ", rank, " has ", status.ToString()));
    return OnFailed(rank, status);
  }
  if (trainer->call() == Trainer::Call::kReattach) ++tally_.reattached;
  if (trainer->call() == Trainer::Call::kJoin ||
      trainer->call() == Trainer::Call::kReattach) {
    witness_.Observe();
    witness_.CheckFirstStep(*trainer);
  }
  if (trainer->call() != Trainer::Call::kPush) return;
  if (trainer->has_counted()) {
    ledger_.OnAcknowledged(trainer->push());
    ++tally_.acknowledged;
    Say(absl::StrCat("push ", trainer->push(), " of worker ", rank,
                     " is acknowledged"));
  }
  ++counted_[rank];
  trainer->EndStep();
}

void Simulation::OnFailed(uint32_t rank, const absl::Status& status) {
  Trainer* const trainer = trainers_[rank].get();
  const bool may_go_on = trainer->has_joined() &&
                         trainer->call() != Trainer::Call::kReattach &&
                         (absl::IsDataLoss(status) || absl::IsAborted(status));
  if (may_go_on && dice_.Chance(60)) {
    Say(absl::StrCat("worker ", rank, " attaches again"));
    return trainer->StartReattach(status);
  }
  needs_restart_ |= AsksForServers(status);
  KillTrainer(rank);
}

void Simulation::KillTrainer(uint32_t rank) {
  if (trainers_[rank] == nullptr) return;
  Say(absl::StrCat("worker ", rank, " dies"));
  for (size_t server = 0; server < servers_.size(); ++server) {
    if (servers_.at(server) == nullptr) continue;
    losses_.push_back({servers_.at(server)->options().id,
                       {rank, trainers_[rank]->incarnation()}});
  }
  Kill(std::move(trainers_[rank]));
  while (is_fair_ && !losses_.empty()) TellLoss();
}

// Kills a client. A server may notice immediately that the client of a call is
// gone.
void Simulation::Kill(std::unique_ptr<Client> client) {
  if (client == nullptr) return;
  Say(absl::StrCat("client ", client->id(), " dies"));
  for (const LetterPtr& letter : mail_.Open()) {
    if (letter->client == client->id() && letter->cancel && dice_.Chance(60)) {
      letter->cancel();
    }
  }
  client->Kill();
  ending_.push_back(std::move(client));
}

void Simulation::KillAllClients() {
  Kill(std::move(chief_));
  for (auto& saver : savers_) Kill(std::move(saver));
  for (uint32_t rank = 0; rank < workers_; ++rank) KillTrainer(rank);
}

}  // namespace penstock::ps
