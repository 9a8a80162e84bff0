// The barrier of synchronous training, as a pure state machine. Decides which
// workers a step waits for, when it is complete, and who is dead.

#ifndef PENSTOCK_PS_SYNC_BARRIER_H_
#define PENSTOCK_PS_SYNC_BARRIER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace penstock::ps {

struct MemberId {
  uint32_t rank = 0;
  uint64_t incarnation = 0;
};

// Version v of the variables is what v steps have made of them. Step v computes
// on version v and makes version v + 1.
//
//   state       event      guard                       action        next
//   ----------  ---------  --------------------------  ------------  ----------
//   assembling  join       all expected are there      -             gathering
//   assembling  tick       assemble_timeout is over    -             gathering
//   gathering   push/      a push is there, and every  apply(step,   applying
//               leave/     required member's           ranks)
//               lost/tick
//   applying    applied    -                           ++version     gathering
//   any         drain      -                           -             draining
//   draining    applied    a step was being applied    ++version     draining
//
// Members may push while the barrier assembles. When it enters gathering, the
// guard of that state is therefore tested at once. kApplied is ignored unless a
// step is being applied. All other events leave the state as it is. Joins,
// heartbeats, leaves and deaths change the membership in every state but
// draining; there they are refused, and so are pushes.
//
// A step waits for the pushes of its required members. A member is required
// from the first step that it can have computed: one that joins while others
// gather is required from the next step on, but its push for the current step
// counts too, if it comes in time. A push still counts if its member dies
// afterwards. At most one push of each rank counts for a step.
//
// No clock, no thread, no I/O. The caller passes the time, by a monotonic
// clock, and holds its own lock in every call.
class SyncBarrier {
 public:
  enum class State { kAssembling, kGathering, kApplying, kDraining };

  struct Options {
    uint32_t expected_workers = 1;
    // How long a member may be silent. Longer than a garbage collection or the
    // hiccup of a suspended laptop, shorter than a user's patience.
    absl::Duration lease = absl::Seconds(10);
    // How long after the first join the run starts without those who are
    // missing.
    absl::Duration assemble_timeout = absl::Seconds(60);
  };

  enum class EventKind {
    kJoin,       // supersedes an older incarnation of the same rank
    kHeartbeat,  // of no member: a join, unless its rank is taken
    kLeave,      // an orderly good-bye
    kLost,       // the connection broke
    kPush,       // `member` has sent valid gradients for `step`
    kApplied,    // the caller has done what `apply` asked
    kTick,       // time has passed
    kDrain,      // no more steps
  };
  struct Event {
    EventKind kind;
    MemberId member;
    uint64_t step = 0;
  };

  enum class Verdict {
    kAccepted,
    kDuplicate,   // this step already has this rank's gradient
    kLate,        // the step is over
    kAhead,       // a step that nobody can have computed yet
    kNotMember,   // never joined, or the lease is over
    kSuperseded,  // a newer incarnation has the rank
    kDraining,
  };
  struct Apply {
    uint64_t step;
    std::vector<uint32_t> ranks;  // whose gradients to average, ascending
  };
  struct Outcome {
    Verdict verdict = Verdict::kAccepted;
    absl::optional<Apply> apply;     // do it, then report kApplied
    std::vector<std::string> notes;  // lines for the log: joins, deaths, starts
  };

  explicit SyncBarrier(const Options& options) : options_(options) {}

  Outcome Handle(const Event& event, absl::Time now);

  // Returns when to send the next kTick at the latest.
  absl::Time NextDeadline() const;

  State state() const { return state_; }
  uint64_t version() const { return version_; }
  size_t live_members() const { return members_.size(); }
  uint64_t members_lost() const { return members_lost_; }

  // Returns the ranks that the current step still waits for.
  std::vector<uint32_t> Missing() const;

 private:
  struct Member {
    uint64_t incarnation;
    absl::Time expires;
    uint64_t required_from;  // step
  };

  Verdict OnJoin(const MemberId& id, absl::Time now, Outcome* outcome);
  Verdict OnHeartbeat(const MemberId& id, absl::Time now, Outcome* outcome);
  Verdict OnPush(const MemberId& id, uint64_t step, absl::Time now);
  void OnApplied();
  void OnTick(absl::Time now, Outcome* outcome);
  void Add(const MemberId& id, absl::Time now, Outcome* outcome);
  void Lose(uint32_t rank, const char* reason, Outcome* outcome);
  void Advance(absl::Time now, Outcome* outcome);
  bool IsMember(const MemberId& id) const;
  bool StepIsComplete() const;

  const Options options_;
  State state_ = State::kAssembling;
  uint64_t version_ = 0;
  std::map<uint32_t, Member> members_;  // by rank
  std::set<uint32_t> pushed_;           // ranks, of step version_
  bool apply_is_out_ = false;           // the caller owes a kApplied
  absl::Time assemble_deadline_ = absl::InfiniteFuture();
  uint64_t members_lost_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SYNC_BARRIER_H_
