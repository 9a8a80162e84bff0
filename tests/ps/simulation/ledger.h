// Records everything that happens to a simulated cluster.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_LEDGER_H_
#define PENSTOCK_TESTS_PS_SIMULATION_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "ps/checkpoint/manifest.h"
#include "ps/server/model_snapshot.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {

// The record that one server counted a push.
struct Taken {
  uint64_t run = 0;
  size_t server = 0;
  uint64_t node = 0;  // the process
  uint64_t clock = 0;
  bool is_inferred = false;  // inferred from the answer to a repeated push
};

struct Push {
  uint64_t number = 0;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
  uint64_t run = 0;  // the worker's
  PushIds rows;
  std::vector<Taken> taken;  // the server that counted the push
  bool is_acknowledged = false;
  // True if the worker has a later acknowledged push. This push is then
  // applied.
  bool is_settled = false;

  size_t servers() const { return rows.front().size(); }
};

// One training, from its definition until its end.
struct Life {
  uint64_t run = 0;
  absl::optional<CutId> cut;    // the restored one
  std::vector<uint64_t> nodes;  // processes, by server
  std::vector<size_t> owners;   // servers of the dense tables, by policy
};

struct CutRecord {
  uint64_t order = 0;  // the position among all checkpoints, by beginning
  uint64_t run = 0;
  std::vector<uint64_t> nodes;
  std::set<uint64_t> required;  // pushes
  checkpoint::CutRecord clocks;
};

// The values of all servers, by policy.
struct Values {
  std::vector<std::vector<float>> dense;
  std::vector<std::map<uint64_t, float>> rows;
};

// The record of pushes, trainings and cuts. Computes the values that the
// cluster must have. Does not use the servers' code. Takes only the clocks of
// manifests from the servers.
class Ledger {
 public:
  // Makes a ledger for one dense and one sparse table of each staleness.
  explicit Ledger(std::vector<int64_t> staleness)
      : staleness_(std::move(staleness)) {}

  Push& NewPush(uint32_t rank, uint64_t incarnation, uint64_t run);
  Push& push(uint64_t number) { return pushes_.at(number); }
  const std::map<uint64_t, Push>& pushes() const { return pushes_; }
  void OnCounted(uint64_t push, Taken taken, bool is_inferred);
  // Returns true if a push has counted at a server in any training.
  bool HasCounted(uint64_t push, size_t server) const;
  // Returns true if the count was already inferred. In that case, another count
  // of the same push would be a violation.
  bool ConfirmCounted(uint64_t push, const Taken& taken);
  void OnAcknowledged(uint64_t push);

  // Records a new training, or a training that was defined again.
  void OnLife(const Life& life) { lives_[life.run] = life; }
  const Life* FindLife(uint64_t run) const;
  // Returns the numbers of a run's settled pushes.
  std::set<uint64_t> SettledIn(uint64_t run) const;

  void OnBegun(const CutId& cut, uint64_t run);
  CutRecord* FindCut(const CutId& cut);
  // Returns the clock of a rank in a cut, or 0 if the cut is unknown.
  uint64_t ClockIn(const CutId& cut, uint32_t rank) const;

  // Each Check function returns descriptions of violations, or an empty list if
  // there are none.
  //
  //  Checks that each acknowledged push is completely in `cut` or completely
  // outside. Checks that `cut` has the pushes that must be there.
  std::vector<std::string> CheckCut(const CutId& cut) const;
  // Checks that `cut` contains `pushes`.
  std::vector<std::string> CheckHas(const CutId& cut,
                                    const std::set<uint64_t>& pushes) const;
  // Checks that no acknowledged push of the run was lost when a process died.
  std::vector<std::string> CheckKept(uint64_t run) const;
  // Checks the values of a cluster in this run. Only unsettled pushes of this
  // run may be missing.
  std::vector<std::string> CheckValues(uint64_t run,
                                       const Values& values) const;

 private:
  enum class Where { kOut, kCurrent, kPast };
  using Group = std::tuple<uint64_t, size_t, uint64_t, uint64_t>;
  using CutKey = std::pair<uint64_t, uint64_t>;

  static CutKey KeyOf(const CutId& cut) { return {cut.step, cut.id}; }
  static Group GroupOf(const Taken& taken) {
    return {taken.run, taken.server, taken.node, taken.clock};
  }
  bool IsInCut(const CutRecord& cut, const Push& push, const Taken& taken,
               int depth) const;
  bool IsInCut(const absl::optional<CutId>& cut, const Push& push,
               const Taken& taken, int depth) const;
  Where WhereIs(const Life& life, const Push& push, const Taken& taken) const;
  bool IsOnlySynchronous() const;
  void CheckRows(const Life& life, size_t policy,
                 const std::map<uint64_t, float>& rows,
                 std::vector<std::string>* wrong) const;
  void CheckDense(const Life& life, size_t policy, const Values& values,
                  std::vector<std::string>* wrong) const;

  const std::vector<int64_t> staleness_;
  std::map<uint64_t, Push> pushes_;
  std::map<uint64_t, Life> lives_;
  std::map<CutKey, CutRecord> cuts_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_LEDGER_H_
