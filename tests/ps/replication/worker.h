// A simulated worker that pushes and pulls.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_WORKER_H_
#define PENSTOCK_TESTS_PS_REPLICATION_WORKER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "tests/ps/replication/ledger.h"
#include "tests/ps/replication/node.h"
#include "tests/ps/replication/world.h"

namespace penstock::ps::replication {

// A worker that joins, and then pushes and pulls alternately. Repeats each call
// until the call is answered.
class Worker {
 public:
  struct Hooks {
    // Sends a call to the server that the worker believes to lead.
    std::function<void(const Call&)> send;
    // Returns false if the worker must wait for slower workers.
    std::function<bool(uint64_t clock)> may_push;
    // Returns true if two other workers have begun with this rank since.
    // Servers remember only one superseded worker of each rank.
    std::function<bool()> has_two_rivals;
  };

  Worker(World* world, Ledger* ledger, Hooks hooks, uint32_t rank,
         uint64_t incarnation, size_t max_bytes);

  // Begins the next call, or repeats the last one.
  void Act();
  void OnReply(const Reply& reply);

  const std::string& name() const { return name_; }
  uint64_t clock() const { return clock_; }
  uint64_t pushed() const { return pushed_; }
  bool is_over() const { return is_over_; }

 private:
  void Begin();

  World* const world_;
  Ledger* const ledger_;
  const Hooks hooks_;
  const WorkerId id_;
  const std::string name_;
  const size_t max_bytes_;
  bool is_over_ = false;  // superseded
  bool is_member_ = false;
  bool pulls_ = false;
  uint64_t clock_ = 0;
  uint64_t pushed_ = 0;
  uint64_t next_number_ = 1;
  Call call_;
  size_t recorded_ = 0;  // number of the call in the ledger
  bool is_calling_ = false;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_WORKER_H_
