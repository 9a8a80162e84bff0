// Simulates a replicated shard with servers, workers and an owner of the views.
// A seed determines all events.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_SIMULATION_H_
#define PENSTOCK_TESTS_PS_REPLICATION_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/ps/replication/ledger.h"
#include "tests/ps/replication/node.h"
#include "tests/ps/replication/owner.h"
#include "tests/ps/replication/worker.h"
#include "tests/ps/replication/world.h"

namespace penstock::ps::replication {

// A random run. First there are faults: crashes, frozen processes, lost
// messages, cut links, jumps of clocks, and changes of the view. Then there are
// no more faults: the shard must continue, and get all its backups.
class Simulation {
 public:
  explicit Simulation(uint64_t seed);

  // Runs to the end, or to the first error. Returns the error, or "".
  std::string Run();
  const std::map<std::string, uint64_t>& counts() const {
    return world_.counts();
  }

 private:
  // A server name, and its process.
  struct Host {
    std::string name;
    std::shared_ptr<Node> node;  // null: crashed
    absl::Time frozen_until = absl::InfinitePast();
  };

  std::shared_ptr<Node> MakeNode(const ReplicaId& id, Node::Start start);
  Host* At(const std::string& name);
  std::vector<ReplicaId> Servers() const;
  // Runs `event` at the host's current process, once that process is no longer
  // frozen.
  void Deliver(const std::string& name, std::function<void(Node*)> event);
  void Send(const std::string& from, const std::string& to,
            std::function<void(Node*)> event);
  void StartTimers(const std::string& name);
  void StartWorker(uint32_t rank);
  void SendCall(const Worker& worker, const Call& call);
  void SendReply(const std::string& from, const std::string& to,
                 const Reply& reply);
  void Announce(const std::shared_ptr<const View>& view);

  void Fault();
  void Crash(Host* host);
  void Restart(Host* host);
  void CutLink();
  void JumpClock();
  void CheckAnswer(Node* node, uint64_t seq);
  bool MayPush(uint64_t clock) const;
  void PlayFair();
  void ActWorkers();
  bool HavePushed() const;
  bool AreEqual() const;
  bool IsOver() const;
  std::string WhyNotOver() const;

  World world_;
  Ledger ledger_;
  Options options_;
  Step step_;
  const uint64_t fault_rate_;  // of 1,000 events
  const uint64_t staleness_;
  std::vector<Host> hosts_;
  std::unique_ptr<Owner> owner_;
  std::vector<std::vector<std::shared_ptr<Worker>>> workers_;  // by rank
  uint64_t next_incarnation_ = 1;
  std::vector<uint64_t> fair_goals_;  // pushes of each rank
  absl::Time next_jump_ = absl::InfinitePast();
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_SIMULATION_H_
