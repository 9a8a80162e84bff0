// A simple model of the coordinator. The model forgets nothing, has no index,
// and searches its whole history for each answer.

#ifndef PENSTOCK_TESTS_PS_CONSISTENCY_MODEL_H_
#define PENSTOCK_TESTS_PS_CONSISTENCY_MODEL_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"

namespace penstock::ps {

class Model {
 public:
  using Verdict = Coordinator::Verdict;

  explicit Model(const Coordinator::Options& options) : options_(options) {
    tables_.resize(options.policies.size());
  }

  Verdict Join(const WorkerId& worker, absl::Time now);
  Verdict Heartbeat(const WorkerId& worker, absl::Time now);
  void Leave(const WorkerId& worker);
  void Lost(const WorkerId& worker);
  void Tick(absl::Time now);

  // Returns the answer to a push that arrives now, or nullopt if the push must
  // wait. Remembers accepted pushes and late pushes.
  struct PushAnswer {
    Verdict verdict;
    std::vector<bool> counted;
  };
  absl::optional<PushAnswer> Push(const WorkerId& worker, uint64_t clock);

  // Returns true if no worker of the rank can have reached the clock.
  bool IsFarAhead(uint32_t rank, uint64_t clock) const;

  // Returns true if a pull of a member or a reader must be answered.
  bool IsDue(uint64_t clock, const std::vector<size_t>& policies) const;
  Verdict Standing(const WorkerId& worker);
  // Renews the lease of a member: any call is a sign of life.
  void Hear(const WorkerId& worker, absl::Time now);

  // Returns the batches that must be applied now. Returns each batch once.
  std::vector<Coordinator::Apply> TakeApplies();
  void Applied(size_t policy);

  uint64_t ClockOf(uint32_t rank) const;
  uint64_t floor() const { return floor_; }

 private:
  using Pushes = std::vector<std::pair<uint64_t, uint32_t>>;  // clock, rank
  struct Member {
    uint64_t incarnation;
    uint64_t from;
    absl::Time heard;
  };
  struct Table {
    uint64_t version = 0;
    Pushes counted;  // in the order in which they came
    std::multiset<std::pair<uint64_t, uint32_t>> applied;
    Pushes applying;
  };

  bool IsMember(const WorkerId& worker) const;
  uint64_t Progress(uint32_t rank) const;
  uint64_t Limit(size_t policy) const;
  Pushes Unapplied(size_t policy) const;
  std::vector<uint64_t> SynchronousVersions() const;
  void Assemble(absl::Time now);
  void RaiseFloor();

  const Coordinator::Options options_;
  bool assembled_ = false;
  absl::Time first_join_ = absl::InfiniteFuture();
  uint64_t floor_ = 0;
  std::map<uint32_t, Member> members_;
  std::map<uint32_t, std::vector<uint64_t>> incarnations_;  // ever, last is new
  std::set<std::pair<uint32_t, uint64_t>> left_;
  std::map<uint32_t, uint64_t> began_;  // the clock of the last join
  std::vector<std::pair<uint32_t, uint64_t>> pushes_;  // all that were accepted
  std::vector<Table> tables_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CONSISTENCY_MODEL_H_
