// A simulated server that holds a replica.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_NODE_H_
#define PENSTOCK_TESTS_PS_REPLICATION_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/replication/replica.h"
#include "tests/ps/replication/ledger.h"
#include "tests/ps/replication/world.h"

namespace penstock::ps::replication {

// A worker's call, and its answer.
struct Call {
  enum Kind { kJoin, kPush, kPull } kind = kPush;
  uint64_t number = 0;
  std::string from;
  WorkerPush push;  // for a join: its worker
  uint64_t amount = 0;
  size_t bytes = 0;
  uint64_t floor = 0;  // for a pull: Ledger::Floor() when the pull began
};
struct Reply {
  enum Result { kDone, kAgain, kSuperseded, kNotJoined, kPassed };
  uint64_t number = 0;
  Result result = kAgain;
  uint64_t clock = 0;  // for a join: the first clock
  uint64_t value = 0;  // for a pull: the sum of all amounts
};

// The number of ranks whose pushes make a step. If 0, each push is applied by
// itself.
struct Step {
  uint32_t ranks = 0;
};

class Node {
 public:
  enum class Start { kEmpty, kWithValues, kLeads };

  // The environment of a node. Each function may be called at any time.
  struct Hooks {
    // Delivers a message to the live node with this name, if there is one.
    std::function<void(const std::string& to, std::function<void(Node*)>)> send;
    std::function<void(const std::string& to, const Reply&)> reply;
    std::function<void(uint64_t view, const ReplicaId&)> propose;
    std::function<void(uint64_t view, const ReplicaId&)> complain;
    // Checks that this node may now answer from the entries up to `seq`.
    std::function<void(Node*, uint64_t seq)> check_answer;
  };

  Node(World* world, Ledger* ledger, Hooks hooks, const Options& options,
       Step step, Start start);

  void OnView(const std::shared_ptr<const View>& view);
  void OnCall(const Call& call);
  void OnTimer();
  // Applies the committed entries.
  void OnApply();

  Replica& replica() { return replica_; }
  const ReplicaId& id() const { return options_.self; }
  HostClock& clock() { return clock_; }
  const Values& values() const { return values_; }
  // Returns true if the primary may answer now. Changes nothing.
  bool MayAnswer();
  // Returns true if the entry, which was accepted in `view`, is in the log or
  // in the values.
  bool HoldsEntry(uint64_t seq, uint64_t view) const;
  void CheckBounds();

 private:
  struct Waiting {
    Call call;
    uint64_t clock = 0;
  };
  struct WaitingPull {
    Call call;
    uint64_t target = 0;
  };

  void OnAppend(const Append& message);
  void OnSnapshot(const Snapshot& message);
  void OnAnswer(const Answer& answer);
  void Answered(const ReplicaId& to, Answer answer);
  void TakeJoin(const Call& call);
  void TakePush(const Call& call);
  void Gather(const Call& call);
  void AcceptOne(const Call& call);
  void AcceptStep();
  void Wait(absl::StatusOr<uint64_t> seq, const Call& call, uint64_t clock);
  void Refuse(const Call& call, PushHistory::Verdict verdict);
  void Send(const ReplicaId& to, Append message);
  void SendSnapshot(const ReplicaId& to, const Snapshot& message);
  void RenewSnapshots(Primary* primary);
  void Pump();
  void AnswerCalls();
  void DropCalls();

  World* const world_;
  Ledger* const ledger_;
  const Hooks hooks_;
  const Options options_;
  const Step step_;
  const bool tells_views_;
  const bool is_slow_;
  HostClock clock_;
  Replica replica_;
  std::shared_ptr<const View> view_;
  Values values_;
  std::multimap<uint64_t, Waiting> waiting_;  // by sequence number
  std::vector<WaitingPull> pulls_;
  std::map<uint32_t, Call> gathered_;        // of a synchronous step, by rank
  std::map<ReplicaId, Snapshot> snapshots_;  // the last answer to each joiner
  // For each replica, the messages with entries that the replica has not
  // answered.
  std::map<ReplicaId, int> in_flight_;
  uint64_t timers_ = 0;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_NODE_H_
