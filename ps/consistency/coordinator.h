// Decides which pushes and pulls a parameter server accepts, for all tables.

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

// The Membership and the table policies of one server. Tables with the same
// rule share a policy, so that a thousand variables cost as much as one
// variable.
//
// A worker ends each step with one push, which covers all policies:
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
// The first matching line decides. A push that is repeated after a lost answer
// therefore counts once. A step that was skipped (e < c) is never accepted
// afterwards.
//
// A push for clock c is never refused as ahead if the worker pulled the tables
// of all policies for c. A pull of some policies says nothing about the others.
//
// The member's step is at most the largest of e, the floor and the synchronous
// policies' versions. A member's pull for more than kMaxLead above that step is
// ahead, too. Without this limit, a single push could use up all clocks of a
// rank.
//
// A call that cannot be answered yet is held, for max_wait at most. A held call
// is answered in the outcome of a later call, and any other call in its own
// outcome. Limits for held calls:
// - one push of each worker (a later push replaces the held push);
// - max_held_pulls pulls of each worker, and of all readers together.
//
// Pure: no clock, no thread, no I/O. The caller:
// - passes the time, by a monotonic clock;
// - holds its own lock in every call;
// - keeps the gradients, by PushId and policy, until they are applied.
class Coordinator {
 public:
  // Limits the steps that a worker may skip. No real worker skips nearly as
  // many. With this limit, the clocks of a rank suffice for 2^32 pushes.
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
    // For an accepted or late push: by policy, true if the policy counts the
    // push.
    std::vector<bool> counted = {};
    // For an accepted pull: the clock for a push computed on these values. The
    // clock may exceed the pull's clock, because the pull's step may already be
    // over.
    uint64_t clock = 0;
    // For a pull that timed out: the awaited workers, as text for people.
    std::string reason = {};
  };

  struct Apply {
    size_t policy;
    uint64_t version;            // version before the apply
    std::vector<PushId> pushes;  // to average, in order of rank
  };

  struct Outcome {
    // The verdict of Join() and Heartbeat(). `answers` has the verdicts of
    // pushes and pulls.
    Verdict verdict = Verdict::kAccepted;
    // For Join(): the clock at which the worker begins.
    uint64_t clock = 0;
    std::vector<Answer> answers;
    std::vector<Apply> applies;      // do each, then report Applied()
    std::vector<std::string> notes;  // lines for the log
  };

  // Returns INVALID_ARGUMENT, which names the invalid option. Clocks from a
  // checkpoint are lowered to the oldest version of a synchronous policy,
  // because later pushes were accepted but not applied.
  static absl::StatusOr<Coordinator> Create(Options options);

  Outcome Join(const WorkerId& worker, absl::Time now);
  Outcome Heartbeat(const WorkerId& worker, absl::Time now);
  // Starts the run with the present members.
  Outcome Start();
  Outcome Leave(const WorkerId& worker);
  Outcome Lost(const WorkerId& worker);

  // Judges a push. `ticket` names the call in its answer. No two held calls may
  // have the same ticket.
  Outcome Push(uint64_t ticket, const WorkerId& worker, uint64_t clock,
               absl::Time now);
  // Returns the verdict if Push() would refuse this push now: the worker is no
  // member, or the clock is ahead or out of bounds. Changes nothing.
  absl::optional<Verdict> Refuses(const WorkerId& worker, uint64_t clock) const;
  // Judges a pull. `policies` are the wanted policies, as indices into the
  // options; empty for all. `worker` is nullopt for a reader that is no worker.
  Outcome Pull(uint64_t ticket, const absl::optional<WorkerId>& worker,
               uint64_t clock, std::vector<size_t> policies, absl::Time now);
  // Drops a held call without an answer, because its caller no longer waits.
  void Cancel(uint64_t ticket);

  // Reports that the caller has finished the Apply of `policy`.
  Outcome Applied(size_t policy, absl::Time now);
  Outcome Tick(absl::Time now);
  // Answers all held calls. Pushes being applied continue.
  Outcome Drain();

  // Returns the latest time for the next Tick().
  absl::Time NextDeadline() const;

  const Membership& membership() const { return membership_; }
  const ConsistencyPolicy& policy(size_t at) const { return policies_[at]; }
  size_t policies() const { return policies_.size(); }
  size_t held_pulls() const { return held_.pulls(); }
  size_t held_pushes() const { return held_.pushes(); }

  // Returns the workers that a pull for `clock` waits for, for people: "waits
  // for worker 3 (at step 7 of 9)".
  std::string Explain(uint64_t clock,
                      const std::vector<size_t>& policies) const;

  // Returns the clocks of all ranks without unapplied pushes, for a checkpoint.
  // Exact if no push is unapplied, or if all policies have the same unapplied
  // pushes, as at a cut.
  std::vector<RankClock> AppliedClocks() const;
  // Returns, for a checkpoint, a step before which every push is applied: the
  // first step that waits for workers, or the first step with an unapplied
  // push, whichever is lower.
  uint64_t AppliedFloor() const;

  // Take the server to a cut:
  // - Hold() stops new applies, so that the servers' cut can be chosen;
  // - GoOnTo() continues to the cut, and not beyond;
  // - CloseCut() refuses later pushes in the cut, once IsAtCut(server);
  // - Release() ends the hold, once the values are copied.
  //
  // Pushes are accepted and held meanwhile. The server reaches the cut once all
  // members have pushed up to the cut.
  HeldSteps Hold();
  // Returns INVALID_ARGUMENT for a cut that FirstCutOf() cannot return: a cut
  // for a model of the other kind, or a cut that is further ahead than any push
  // that counts. `is_synchronous`: the model has a synchronous table, which may
  // be at another server.
  absl::Status CheckCut(const CutPoint& cut, bool is_synchronous) const;
  // Returns false if the server is beyond the cut. The hold has then ended, as
  // by Release().
  bool GoOnTo(CutPoint cut, Outcome* outcome);
  const CutGate& gate() const { return gate_; }
  // At the cut: ends the steps before the cut for all ranks, even for ranks
  // that join later. A worker for which this server has not waited cannot push
  // these steps here afterwards. Therefore no push is inside the cut at another
  // server and outside the cut here.
  Outcome CloseCut();
  // Works like CloseCut(), for any cut. The gate may be open.
  Outcome Forgo(const CutPoint& cut);
  Outcome Release();

 private:
  Coordinator(const Options& options, Membership membership,
              std::vector<ConsistencyPolicy> policies);

  uint64_t Limit() const;
  bool IsFarAhead(uint32_t rank, uint64_t clock) const;
  absl::optional<Answer> JudgePush(const HeldPush& push, absl::Time now);
  Answer TakePush(const HeldPush& push, absl::Time now);
  // Returns the first policy that a pull waits for, or nullopt if the pull is
  // due.
  absl::optional<size_t> FirstWaiting(const HeldPull& pull) const;
  Answer AnswerPull(const HeldPull& pull) const;
  void ReleasePulls(Outcome* outcome);
  void RefuseCallsOf(uint32_t rank, Outcome* outcome);
  // Performs everything that has become possible: applies, verdicts and
  // answers.
  void Settle(Membership::Changes changes, Outcome* outcome);
  void HandOut(Outcome* outcome);

  const absl::Duration max_wait_;
  Membership membership_;
  std::vector<ConsistencyPolicy> policies_;
  HeldCalls held_;
  CutGate gate_;
};

// Returns a text for logs and errors, such as "a clock ahead".
absl::string_view Describe(Coordinator::Verdict verdict);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_COORDINATOR_H_
