// How stale the values may be that the workers of one table, or of several with
// the same rule, compute on.

#ifndef PENSTOCK_PS_CONSISTENCY_POLICY_H_
#define PENSTOCK_PS_CONSISTENCY_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/consistency/membership.h"

namespace penstock::ps {

class CutGate;

// Names the push by which a worker ends its step `clock`.
struct PushId {
  uint32_t rank = 0;
  uint64_t clock = 0;
};

// Staleness is the number of steps by which a worker may be ahead of the
// slowest one: 0 is synchronous training, N is stale synchronous parallel (Ho
// et al., "More Effective Distributed ML via a Stale Synchronous Parallel
// Parameter Server", NIPS 2013), kUnlimited is asynchronous.
//
// The states are the same for all; they differ in what is applied at once, a
// batch:
//
// clang-format off
//   staleness  a batch is               there is one as soon as
//   ---------  -----------------------  ---------------------------------------
//   0          all pushes of the step,  the run is assembled, a push was taken,
//              in order of rank         and at most `backup_workers` members
//                                       have progress <= version
//   any other  the push that was taken  a push was taken
//              first, by itself
//
//   state      event                      action                      next
//   ---------  -------------------------  --------------------------  ---------
//   gathering  there is a batch           hand it out to be applied   applying
//   gathering  take, staleness 0          the push joins the step     gathering
//   applying   a push, staleness 0        it is judged late           applying
//   any        take, any other staleness  the push joins the queue    unchanged
//   applying   applied                    ++version                   gathering
// clang-format on
//
// Whether there is a batch is tested at once when `gathering` is entered, and
// again when a push is taken or the membership changes. All other events leave
// the state as it is. Membership explains progress.
//
// With staleness 0, version v is what v steps have made of the values. Step v
// computes on version v. All its pushes that were taken in time are applied as
// one, and make version v + 1. With k backup workers it does not wait for the k
// slowest, whose pushes are late (Chen et al., "Revisiting Distributed
// Synchronous SGD", 2016). With any other staleness each push is applied by
// itself, in the order in which they were taken, and version counts them.
//
// A push for clock c, by a worker whose clock is not above c, is
//   ahead   c > Limit(): no pull for c of these values was answered
//   busy    (not with staleness 0) one of its rank is not applied yet
//   late    (staleness 0) step c is over, or being applied
//   taken   otherwise; it is applied exactly once
// So there is at most one push of each rank that is not applied.
//
// A pull for clock c is due if c <= Horizon(). Its values then have all pushes
// of steps < c - staleness that were ever taken, and all members that are
// waited for have done those steps. It waits for no other push to be applied.
//
// Pure: no clock, no thread, no I/O.
class ConsistencyPolicy {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  enum class State { kGathering, kApplying };

  struct Options {
    int64_t staleness = 0;        // steps, or kUnlimited
    uint32_t backup_workers = 0;  // with staleness 0 only
    uint64_t version = 0;         // from a checkpoint
  };
  enum class Judgement { kTake, kLate, kBusy, kAhead };

  struct Apply {
    uint64_t version;            // that it is applied to
    std::vector<PushId> pushes;  // to average, in order of rank
  };

  // Returns INVALID_ARGUMENT, which names the option.
  static absl::StatusOr<ConsistencyPolicy> Create(const Options& options);

  // Says what to do with a push, by a worker whose clock is not above its own.
  Judgement Judge(const PushId& push, const Membership& members) const;
  // Takes a push that was judged kTake.
  void Take(const PushId& push);
  // Returns what is to be applied now, if anything. It is handed out once, and
  // the next only when Applied() has said that it is done. Passes over pushes
  // that `gate`, if any, does not let through.
  absl::optional<Apply> Next(const Membership& members,
                             const CutGate* gate = nullptr);
  // Returns what has been applied: nothing, if nothing was.
  std::vector<PushId> Applied();

  // Returns the highest clock for which a pull is answered at once.
  uint64_t Horizon(const Membership& members) const;
  // Returns the highest clock that a push may have. It never falls, and is
  // never below Horizon().
  uint64_t Limit(const Membership& members) const;

  // Returns the step that a pull for `clock` waits for: members are waited for
  // whose progress is less. 0 if it does not wait, or only for an apply.
  uint64_t AwaitedStep(uint64_t clock, const Membership& members) const;

  bool synchronous() const { return options_.staleness == 0; }
  State state() const { return state_; }
  uint64_t version() const { return version_; }
  // The pushes that were taken and are not applied.
  const std::set<std::pair<uint64_t, uint32_t>>& unapplied() const {
    return unapplied_;
  }

 private:
  explicit ConsistencyPolicy(const Options& options)
      : options_(options), version_(options.version) {}

  bool IsComplete(const Membership& members) const;
  uint64_t Stretch(uint64_t clock) const;

  Options options_;
  State state_ = State::kGathering;
  uint64_t version_;
  std::deque<PushId> taken_;  // and not being applied, as they came
  std::vector<PushId> applying_;
  // Both of them: (clock, rank), and their ranks.
  std::set<std::pair<uint64_t, uint32_t>> unapplied_;
  absl::flat_hash_set<uint32_t> busy_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_POLICY_H_
