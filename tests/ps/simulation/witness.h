// Observes and checks the events of a simulated cluster.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_WITNESS_H_
#define PENSTOCK_TESTS_PS_SIMULATION_WITNESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "tests/ps/simulation/clients.h"
#include "tests/ps/simulation/ledger.h"
#include "tests/ps/simulation/mail.h"
#include "tests/ps/simulation/servers.h"

namespace penstock::ps {

// An observer of answered letters and of the servers. Works while all other
// threads wait. Records events in the ledger, and compares the servers with the
// ledger.
class Witness {
 public:
  using Say = std::function<void(const std::string&)>;
  // A function that receives descriptions of violations. The list may be empty.
  using Blame = std::function<void(const std::vector<std::string>&)>;

  // `ledger` and `servers` outlive the witness.
  Witness(Ledger* ledger, Servers* servers, Say say, Blame blame)
      : ledger_(ledger),
        servers_(servers),
        say_(std::move(say)),
        blame_(std::move(blame)) {}

  void NotePush(const Letter& letter);
  // Records that a checkpoint began. `settled` are the pushes that were settled
  // when the caller's checkpoint began; null if the caller is gone.
  void NoteBegun(const Letter& letter, const std::set<uint64_t>* settled);
  void NoteCommit(const Letter& letter);
  // Records a new training, if the servers have one.
  void Observe();
  // Forgets all acknowledged checkpoints. Call when the main folder is lost.
  void ForgetCheckpoints() { newest_.reset(); }

  void CheckAll();
  // Checks the step with which a worker that has joined begins.
  void CheckFirstStep(const Trainer& trainer);

  size_t checkpoints() const { return checkpoints_; }  // committed
  // Returns how often a training continued from a checkpoint.
  size_t restores() const { return restores_; }

 private:
  void CheckNewest(const Life& life);
  // Records cancelled pushes that have counted, as moved rows show.
  void InferCounted(const Values& values);

  Ledger* const ledger_;
  Servers* const servers_;
  const Say say_;
  const Blame blame_;
  absl::optional<CutId> newest_;         // acknowledged, in the main folder
  std::map<uint64_t, CutId> committed_;  // the newest, by run
  // The pushes whose calls were answered CANCELLED. A server may have counted
  // them earlier.
  std::vector<std::pair<uint64_t, Taken>> cancelled_;
  size_t checkpoints_ = 0;
  size_t restores_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_WITNESS_H_
