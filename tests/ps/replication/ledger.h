// A model of a simulated shard: what it has promised and done. The model
// forgets nothing.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_LEDGER_H_
#define PENSTOCK_TESTS_PS_REPLICATION_LEDGER_H_

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ps/replication/log.h"
#include "tests/ps/replication/linearizability.h"
#include "tests/ps/replication/world.h"

namespace penstock::ps::replication {

// The gradients of a push, or the aggregate of a step.
class Amount final : public Payload {
 public:
  Amount(uint64_t amount, size_t bytes) : amount_(amount), bytes_(bytes) {}
  uint64_t amount() const { return amount_; }
  size_t bytes() const override { return bytes_; }

 private:
  const uint64_t amount_;
  const size_t bytes_;
};

// The values of a shard.
struct Values {
  // A hash of all entries. Each entry changes all bits, so two replicas are
  // equal only if they have applied the same entries in the same order.
  uint64_t bits = 0;
  uint64_t sum = 0;  // of all amounts
};

class ValuesPayload final : public Payload {
 public:
  explicit ValuesPayload(const Values& values) : values_(values) {}
  const Values& values() const { return values_; }
  size_t bytes() const override { return sizeof(values_); }

 private:
  const Values values_;
};

void Apply(const Entry& entry, Values* values);

class Ledger {
 public:
  explicit Ledger(World* world) : world_(world) {}

  // Checks an entry that a replica has applied, and its values afterwards.
  void Applied(const Entry& entry, uint64_t bits);
  // Checks values that a replica has taken from a snapshot.
  void Restored(uint64_t seq, uint64_t bits);
  void Acknowledged(const WorkerPush& push, uint64_t seq);
  void Joined(const WorkerId& worker, uint64_t seq);

  // Returns the last entry that a pull which begins now must see.
  uint64_t Floor() const { return floor_; }
  // Checks the answer to a pull. `floor` is the value of Floor() at the
  // beginning of the pull.
  void Pulled(uint64_t floor, uint64_t applied, uint64_t bits);

  // Record the calls of workers, for JudgeHistory(). BeginPull() and
  // BeginPush() return a number for EndCall(). `value` is the answer to a pull.
  size_t BeginPull();
  size_t BeginPush(const WorkerPush& push, uint64_t amount);
  void EndCall(size_t call, uint64_t value);

  // Returns the view in which an entry was accepted. Returns 0 if no replica
  // has applied the entry.
  uint64_t ViewOf(uint64_t seq) const;
  // Checks that all acknowledged entries have been applied, and that the
  // answers to all calls are consistent.
  void CheckEnd();

 private:
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;  // rank, incarnation,
                                                         // clock or kJoin
  static constexpr uint64_t kJoin = ~uint64_t{0};

  void Promise(const Key& key, uint64_t seq);
  void Note(const Key& key, uint64_t seq);
  void CheckHistory();

  World* const world_;
  struct Done {
    uint64_t view;
    uint64_t bits;
  };
  std::map<uint64_t, Done> order_;  // by sequence number
  // The sequence numbers of each push and of each join. A worker that was
  // superseded twice may join a second time.
  std::map<Key, std::set<uint64_t>> applied_;
  std::map<Key, std::set<uint64_t>> acknowledged_;
  // The highest clock that was applied for each rank.
  std::map<uint32_t, uint64_t> clocks_;
  uint64_t floor_ = 0;
  std::vector<Operation> history_;
  std::map<size_t, Key> pushes_;  // of history_
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_LEDGER_H_
