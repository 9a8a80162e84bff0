// Bounds the staleness of the values that workers compute on, for the tables of
// one rule.

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

// The identity of the push by which a worker ends its step `clock`.
struct PushId {
  uint32_t rank = 0;
  uint64_t clock = 0;
};

// Staleness is the number of steps by which a worker may be ahead of the
// slowest worker:
// - 0 is synchronous training.
// - N is stale synchronous parallel (Ho et al., "More Effective Distributed ML
//   via a Stale Synchronous Parallel Parameter Server", NIPS 2013).
// - kUnlimited is asynchronous training.
//
// All policies have the same states. They differ in the batch, that is, in the
// pushes that are applied together:
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
//   gathering  a push, staleness 0        the push joins the step     gathering
//   applying   a push, staleness 0        the push is late            applying
//   any        a push, other staleness    the push joins the queue    unchanged
//   applying   the batch was applied      ++version                   gathering
// clang-format on
//
// The policy tests for a batch on entering `gathering`, and again when a push
// is taken or the membership changes. All other events leave the state
// unchanged. Membership explains progress.
//
// With staleness 0, version v is the values after v steps. Step v computes on
// version v. The pushes of step v that were taken in time are applied together,
// and make version v + 1. With k backup workers, a step does not wait for the k
// slowest workers, whose pushes are late (Chen et al., "Revisiting Distributed
// Synchronous SGD", 2016). With any other staleness, each push is applied by
// itself, in the order of taking, and version counts the applied pushes.
//
// A push for clock c, by a worker whose clock is not above c, is
//   ahead   c > Limit(): no pull for c of these values was answered
//   busy    (not with staleness 0) one of its rank is not applied yet
//   late    (staleness 0) step c is over, or being applied
//   taken   otherwise; it is applied exactly once
// Each rank thus has at most one unapplied push.
//
// A pull for clock c is due if c <= Horizon(). The values of a due pull include
// every accepted push of steps < c - staleness: all members that such a step
// waits for have ended the step. A pull does not wait until other pushes are
// applied.
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
    uint64_t version;            // version before the apply
    std::vector<PushId> pushes;  // to average, in order of rank
  };

  // Makes a policy. Returns INVALID_ARGUMENT, which names the invalid option.
  static absl::StatusOr<ConsistencyPolicy> Create(const Options& options);

  // Judges a push, without accepting the push. push.clock must be at least the
  // worker's clock.
  Judgement Judge(const PushId& push, const Membership& members) const;
  // Accepts a push that was judged kTake.
  void Take(const PushId& push);
  // Returns the next batch to apply, if any. Hands out each batch once. Call
  // Applied() after each batch: until then, Next() returns nothing. Skips
  // pushes that `gate` stops.
  absl::optional<Apply> Next(const Membership& members,
                             const CutGate* gate = nullptr);
  // Ends the batch that Next() handed out, and returns its pushes. Returns
  // nothing if there is no such batch.
  std::vector<PushId> Applied();

  // Returns the highest clock for which a pull is answered immediately.
  uint64_t Horizon(const Membership& members) const;
  // Returns the highest clock that a push may have. The limit never falls, and
  // is never below Horizon().
  uint64_t Limit(const Membership& members) const;

  // Returns the step that a pull for `clock` waits for, or 0 if the pull waits
  // for no member. The pull waits for members with less progress than this
  // step.
  uint64_t AwaitedStep(uint64_t clock, const Membership& members) const;

  // Returns true if the current step cannot end before one of `ranks` pushes or
  // leaves. False if the staleness is not 0.
  bool WaitsFor(const std::set<uint32_t>& ranks,
                const Membership& members) const;

  bool synchronous() const { return options_.staleness == 0; }
  State state() const { return state_; }
  uint64_t version() const { return version_; }
  // Returns the pushes that were accepted and are not applied, sorted by
  // (clock, rank).
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
  std::deque<PushId> taken_;  // not being applied, in order of taking
  std::vector<PushId> applying_;
  // The (clock, rank) of each push in taken_ and applying_.
  std::set<std::pair<uint64_t, uint32_t>> unapplied_;
  absl::flat_hash_set<uint32_t> busy_;  // the ranks in unapplied_
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_POLICY_H_
