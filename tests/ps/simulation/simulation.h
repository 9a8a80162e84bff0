// A random run of a whole cluster: servers, chief, workers, checkpoints,
// restores and folders.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_SIMULATION_H_
#define PENSTOCK_TESTS_PS_SIMULATION_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ps/consistency/membership.h"
#include "tests/ps/simulation/clients.h"
#include "tests/ps/simulation/dice.h"
#include "tests/ps/simulation/idle_threads.h"
#include "tests/ps/simulation/ledger.h"
#include "tests/ps/simulation/mail.h"
#include "tests/ps/simulation/servers.h"
#include "tests/ps/simulation/witness.h"

namespace penstock::ps {

inline constexpr size_t kMostServers = 3;

// Counts of events, which show that runs reach the cases that they should test.
struct Tally {
  size_t events = 0;
  size_t acknowledged = 0;  // pushes
  size_t checkpoints = 0;   // committed
  size_t restores = 0;      // trainings that went on from a checkpoint
  size_t refusals = 0;      // of definitions
  size_t deaths = 0;        // of servers
  size_t lost_letters = 0;
  size_t reattached = 0;  // workers that went on after a restart

  void Add(const Tally& other);
};

// A run has two parts. In the first part, random faults occur. The second part
// has no faults. The training must then continue, take a checkpoint, and
// continue from that checkpoint on new servers.
//
// One event happens at a time, while all threads of servers and clients wait.
// The order of the events depends on the seed alone.
class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();

  void Run();

  // Returns the violations; an empty list if there are none.
  const std::vector<std::string>& wrong() const { return wrong_; }
  Tally tally() const;
  // Returns a text of the last events, for people.
  std::string History() const;

 private:
  using Actions = std::vector<std::function<void()>>;
  // A dead worker, and a server that has not noticed the death.
  struct Loss {
    uint64_t node;
    WorkerId worker;
  };

  void Say(const std::string& line);
  void Blame(const std::vector<std::string>& wrong);

  // Waits until all threads are idle. Then records answers and results.
  void Settle();
  void AwaitThreads();
  bool NoteAnswers();
  // Returns the pushes that were settled when the saver that sent the letter
  // began. Returns null if there is no such saver.
  const std::set<uint64_t>* SettledBefore(const Letter& letter) const;

  // Makes one random event happen that advances the training. Returns false if
  // no such event is possible.
  bool Advance();
  void AddLetters(Actions* actions);
  void AddCalls(Actions* actions);
  void DoNext(Trainer* trainer);
  void StartPush(Trainer* trainer);
  void LetTimePass();

  void BuryClients();
  bool TakeResults();
  void OnDefined(const absl::Status& status);
  void OnSaved(const absl::Status& status);
  void OnTrainer(uint32_t rank, const absl::Status& status);
  void StartChief();
  void StartSaver();
  void OnFailed(uint32_t rank, const absl::Status& status);
  void KillTrainer(uint32_t rank);
  void Kill(std::unique_ptr<Client> client);
  void KillAllClients();

  void Fault();
  void LoseLetter();
  void RestartOne();
  void RestartAll(size_t servers, bool is_proper);
  void TellLoss();
  void EndLease();
  void SuspendTrainer();
  bool IsSuspended(uint64_t client) const;

  // Steps of the second part, which has no faults.
  void GoOn(uint64_t pushes);
  void Save();
  bool AdvanceFairly();

  Dice dice_;
  const std::vector<int64_t> staleness_;
  const uint32_t workers_;
  const uint32_t backup_workers_;
  const Model model_;
  Mail mail_;
  Ledger ledger_;
  IdleThreads threads_;
  Servers servers_;
  Witness witness_;
  Tally tally_;
  std::vector<std::string> wrong_;
  std::deque<std::string> history_;

  uint64_t clients_ = 100;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<Saver> savers_[2];
  std::vector<std::unique_ptr<Trainer>> trainers_;  // by rank; null: none
  std::vector<std::unique_ptr<Client>> ending_;     // killed, and still busy
  std::vector<Loss> losses_;
  std::map<uint32_t, uint64_t> counted_;  // pushes by rank in GoOn()
  bool needs_restart_ = false;
  bool is_fair_ = false;
  absl::Status saved_;  // of the last saver
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_SIMULATION_H_
