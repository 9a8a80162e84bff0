// The faults of a simulation.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/ps/simulation/simulation.h"
#include "tests/ps/simulation/virtual_time.h"

namespace penstock::ps {

// Skips more time than a step is held, and more than a dead caller keeps its
// turn. Servers also cancel the calls of dead clients.
void Simulation::LetTimePass() {
  Say("time passes");
  SkipTime(absl::Seconds(35));
  for (const LetterPtr& letter : mail_.Open()) {
    if (letter->is_ghost && letter->cancel) letter->cancel();
  }
}

void Simulation::Fault() {
  const uint64_t kind = dice_.Below(17);
  if (kind < 3) return LoseLetter();
  if (kind < 5) return TellLoss();
  if (kind < 6)
    return KillTrainer(static_cast<uint32_t>(dice_.Below(workers_)));
  if (kind < 8) return StartSaver();
  if (kind < 9) return StartChief();
  if (kind < 10) return LetTimePass();
  if (kind < 11) {
    if (dice_.Chance(50)) return Kill(std::move(chief_));
    return Kill(std::move(savers_[dice_.Below(2)]));
  }
  if (kind < 12) {
    Node* const node = servers_.at(dice_.Below(servers_.size()));
    if (node == nullptr) return RestartOne();
    Say(absl::StrCat("process ", node->options().id, " dies soon"));
    return node->DieAfter(
        static_cast<int>(dice_.Below(dice_.Chance(50) ? 1 : 40)));
  }
  if (kind < 13) {
    const size_t server = dice_.Below(servers_.size());
    Say(absl::StrCat("server ", server, " dies"));
    return servers_.Kill(server);
  }
  if (kind < 15) return EndLease();
  if (kind < 16) return SuspendTrainer();
  RestartAll(dice_.Chance(60) ? servers_.size() : 1 + dice_.Below(kMostServers),
             dice_.Chance(50));
}

// Loses a letter. Prefers pushes, because a repeated push must not count twice.
void Simulation::LoseLetter() {
  std::vector<LetterPtr> letters = mail_.Open();
  letters.erase(
      std::remove_if(letters.begin(), letters.end(),
                     [](const LetterPtr& letter) { return letter->is_ghost; }),
      letters.end());
  if (letters.empty()) return;
  LetterPtr letter = letters[dice_.Below(letters.size())];
  for (const LetterPtr& other : letters) {
    if (other->method == "Push" && dice_.Chance(50)) letter = other;
  }
  ++tally_.lost_letters;
  Say(absl::StrCat("lose ", letter->Text()));
  const bool is_worker =
      std::any_of(trainers_.begin(), trainers_.end(), [&](const auto& trainer) {
        return trainer != nullptr && trainer->id() == letter->client;
      });
  // Fails a worker's call as UNAVAILABLE. The worker repeats the call. Any
  // other client would wait for the server in real time.
  mail_.Fail(letter,
             {is_worker && !letter->is_typed ? grpc::StatusCode::UNAVAILABLE
                                             : grpc::StatusCode::CANCELLED,
              "the connection broke"},
             dice_.Chance(50));
}

void Simulation::TellLoss() {
  if (losses_.empty()) return;
  const size_t at = dice_.Below(losses_.size());
  const Loss loss = losses_[at];
  losses_.erase(losses_.begin() + static_cast<ptrdiff_t>(at));
  for (size_t server = 0; server < servers_.size(); ++server) {
    Node* const node = servers_.at(server);
    if (node == nullptr || node->options().id != loss.node) continue;
    Say(absl::StrCat("server ", server, " loses worker ", loss.worker.rank));
    node->core().Lost(loss.worker);
  }
}

// Ends the lease of a live worker at one server, as if its heartbeats had not
// arrived there.
void Simulation::EndLease() {
  const auto rank = static_cast<uint32_t>(dice_.Below(workers_));
  const size_t server = dice_.Below(servers_.size());
  if (trainers_[rank] == nullptr || servers_.at(server) == nullptr) return;
  Say(absl::StrCat("server ", server, " loses worker ", rank, ", which lives"));
  servers_.at(server)->core().Lost({rank, trainers_[rank]->incarnation()});
}

void Simulation::SuspendTrainer() {
  const auto rank = static_cast<uint32_t>(dice_.Below(workers_));
  if (trainers_[rank] == nullptr) return;
  Say(absl::StrCat("worker ", rank, " stops"));
  trainers_[rank]->Suspend();
}

bool Simulation::IsSuspended(uint64_t client) const {
  return std::any_of(trainers_.begin(), trainers_.end(), [&](const auto& each) {
    return each != nullptr && each->id() == client && each->is_suspended();
  });
}

void Simulation::RestartOne() {
  for (size_t server = 0; server < servers_.size(); ++server) {
    if (servers_.at(server) != nullptr) continue;
    const Servers::How how = {dice_.Chance(70), dice_.Chance(10)};
    Say(absl::StrCat("start server ", server,
                     how.restores ? "" : " without --restore",
                     how.has_other_folder ? " with another folder" : ""));
    return servers_.Start(server, how);
  }
}

void Simulation::RestartAll(size_t servers, bool is_proper) {
  const bool is_other_size = servers != servers_.size();
  if (is_other_size) KillAllClients();
  servers_.KillAll(servers);
  if (dice_.Chance(40)) servers_.LosePower(static_cast<unsigned>(dice_.Bits()));
  const bool is_lost = !is_fair_ && dice_.Chance(5);
  if (is_lost) {
    servers_.LoseFolder();
    witness_.ForgetCheckpoints();
  }
  needs_restart_ = false;
  losses_.clear();
  Say(absl::StrCat("start all ", servers, " servers",
                   is_lost ? ", whose folder is lost" : ""));
  const bool none_restores = !is_proper && dice_.Chance(30);
  // In most cases, starts only one server in a wrong way.
  const size_t wrong = dice_.Chance(80) ? dice_.Below(servers) : servers;
  for (size_t server = 0; server < servers; ++server) {
    Servers::How how;
    if (!is_proper && wrong == servers) {
      how = {!none_restores && dice_.Chance(70), dice_.Chance(30)};
    } else if (!is_proper && wrong == server) {
      how.restores = dice_.Chance(30);
      how.has_other_folder = how.restores;
    }
    servers_.Start(server, how);
  }
}

}  // namespace penstock::ps
