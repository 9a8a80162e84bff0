// Decides which pushes and pulls of all tables a parameter server takes.

#ifndef PENSTOCK_PS_CONSISTENCY_COORDINATOR_H_
#define PENSTOCK_PS_CONSISTENCY_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/cut.h"
#include "ps/consistency/held_calls.h"
#include "ps/consistency/membership.h"
#include "ps/consistency/policy.h"

namespace penstock::ps {

// One Membership and the policies of the tables of one server. Tables with the
// same rule share a policy, so that a thousand variables cost as much as one.
//
// A worker ends each step with one push, which is of all policies at once:
//
// clang-format off
//   a push of clock c, by a       verdict     what changes
//   member whose clock is e
//   ----------------------------  ----------  ---------------------------------
//   c < e                         duplicate   nothing
//   c is above a policy's limit,  ahead       nothing
//   or kMaxLead above the step
//   that the member may be at
//   a policy is busy with the     none yet:   nothing; it is judged again when
//   rank                          it is held  the rank's push has been applied
//   a policy takes it, or there   accepted    those that take it have it; the
//   is no policy                              member's clock becomes c + 1
//   all find it late              late        the member's clock becomes c + 1
// clang-format on
//
// The first line that fits decides. So a push that is repeated, because its
// answer was lost, counts once, and a step that is left out (e < c) never comes
// afterwards.
//
// A push for clock c is never ahead if a pull for c of all policies was
// answered. One of some policies says nothing about the others.
//
// The step that a member may be at is the largest of e, the floor and the
// synchronous policies' versions. A pull of a member that is more than kMaxLead
// above it is ahead, too. Else a single push could use up all clocks of a rank.
//
// A call that cannot be answered yet is held, for max_wait at most. Its answer
// is in the outcome of a later call; that of a call which need not be held is
// in its own. At most one push of each worker is held (a later one replaces
// it), and at most max_held_pulls pulls of each worker, and of all readers
// together.
//
// Pure: no clock, no thread, no I/O. The caller passes the time, by a monotonic
// clock, holds its own lock in every call, and keeps the gradients, by PushId
// and policy, until they are applied.
class Coordinator {
 public:
  // Far more steps than a worker leaves out, and so few that the clocks of a
  // rank last for four thousand million pushes.
  static constexpr uint64_t kMaxLead = 65536;

  struct Options {
    Membership::Options membership;
    std::vector<ConsistencyPolicy::Options> policies;
    absl::Duration max_wait = absl::Seconds(60);
    size_t max_held_pulls = 1024;
  };

  enum class Verdict {
    kAccepted,
    kDuplicate,   // of a push: this step of the worker is done or forgone
    kLate,        // of a push: each table's step is over
    kAhead,       // no pull for this clock can have been answered
    kNotMember,   // never joined, left, or lost
    kSuperseded,  // another process has taken the rank
    kReplaced,    // a later push of the same worker has come meanwhile
    kTimedOut,    // held for max_wait
    kTooMany,     // held calls
    kInvalid,     // a rank, clock or policy out of bounds
    kDraining,
  };

  struct Answer {
    uint64_t ticket = 0;
    Verdict verdict = Verdict::kAccepted;
    // Of a push that was accepted or is late: which policies count it.
    std::vector<bool> counted = {};
    // Of a pull that was accepted: the clock for a push that is computed on
    // these values. It may be above the pull's, whose step may be over.
    uint64_t clock = 0;
    // Of a pull that timed out, for people: whom it was waiting for.
    std::string reason = {};
  };

  struct Apply {
    size_t policy;
    uint64_t version;            // that it is applied to
    std::vector<PushId> pushes;  // to average, in order of rank
  };

  struct Outcome {
    // Of Join() and Heartbeat(). Those of pushes and pulls are in `answers`.
    Verdict verdict = Verdict::kAccepted;
    // Of Join(): the clock to begin at.
    uint64_t clock = 0;
    std::vector<Answer> answers;
    std::vector<Apply> applies;      // do each, then report Applied()
    std::vector<std::string> notes;  // lines for the log
  };

  // Returns INVALID_ARGUMENT, which names the option. Clocks from a checkpoint
  // that are ahead of a synchronous policy's version are set to that: those
  // pushes were taken and not applied.
  static absl::StatusOr<Coordinator> Create(Options options);

  Outcome Join(const WorkerId& worker, absl::Time now);
  Outcome Heartbeat(const WorkerId& worker, absl::Time now);
  Outcome Leave(const WorkerId& worker);
  Outcome Lost(const WorkerId& worker);

  // `ticket` names the call in its answer; no two that are held have the same.
  Outcome Push(uint64_t ticket, const WorkerId& worker, uint64_t clock,
               absl::Time now);
  // `policies` are those whose values are asked for, by their place in the
  // options; none for all. `worker` is nullopt for a reader that is no worker.
  Outcome Pull(uint64_t ticket, const absl::optional<WorkerId>& worker,
               uint64_t clock, std::vector<size_t> policies, absl::Time now);
  // The caller of a held call has given up: it gets no answer.
  void Cancel(uint64_t ticket);

  // The caller has done what an Apply of that policy asked.
  Outcome Applied(size_t policy, absl::Time now);
  Outcome Tick(absl::Time now);
  // Answers all that is held. What is being applied goes on.
  Outcome Drain();

  // Returns when to call Tick() at the latest.
  absl::Time NextDeadline() const;

  const Membership& membership() const { return membership_; }
  const ConsistencyPolicy& policy(size_t at) const { return policies_[at]; }
  size_t policies() const { return policies_.size(); }
  size_t held_pulls() const { return held_.pulls(); }
  size_t held_pushes() const { return held_.pushes(); }

  // Returns whom a pull for `clock` waits for, for people: "waits for worker 3
  // (at step 7 of 9)".
  std::string Explain(uint64_t clock,
                      const std::vector<size_t>& policies) const;

  // Returns the clocks of all ranks, for a checkpoint, less the pushes that are
  // not applied. Exact if there are none, or if all policies have the same, as
  // at a cut.
  std::vector<RankClock> AppliedClocks() const;
  // Returns the step from which on workers are waited for, for a checkpoint: no
  // push that is not applied is below it.
  uint64_t AppliedFloor() const;

  // Take the server to a cut: Hold(), so that nothing new is applied and the
  // servers' cut can be chosen; GoOnTo() that cut, and nothing beyond; and once
  // IsAtCut(), and what there is at the cut is copied, Release().
  //
  // Pushes are taken and held meanwhile. A cut is reached if its pushes come:
  // members that have not pushed up to it are waited for.
  HeldSteps Hold();
  // Returns false, as after Release(), if the server is beyond the cut.
  bool GoOnTo(CutPoint cut, Outcome* outcome);
  bool IsAtCut() const;
  Outcome Release();

 private:
  Coordinator(const Options& options, Membership membership,
              std::vector<ConsistencyPolicy> policies);

  absl::optional<Membership::Steps> StepsUnderWay() const;
  uint64_t Limit() const;
  bool IsFarAhead(uint32_t rank, uint64_t clock) const;
  absl::optional<Answer> JudgePush(const HeldPush& push, absl::Time now);
  Answer TakePush(const HeldPush& push, absl::Time now);
  // Returns the first policy that a pull waits for; nullopt if it is due.
  absl::optional<size_t> FirstWaiting(const HeldPull& pull) const;
  Answer AnswerPull(const HeldPull& pull) const;
  void ReleasePulls(Outcome* outcome);
  void RefuseCallsOf(uint32_t rank, Outcome* outcome);
  // Makes what has become possible happen.
  void Settle(Membership::Changes changes, Outcome* outcome);
  void HandOut(Outcome* outcome);
  static Verdict VerdictOf(Membership::Standing standing);

  const absl::Duration max_wait_;
  Membership membership_;
  std::vector<ConsistencyPolicy> policies_;
  HeldCalls held_;
  CutGate gate_;
};

// For logs and errors: "a clock ahead".
absl::string_view Describe(Coordinator::Verdict verdict);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_COORDINATOR_H_
