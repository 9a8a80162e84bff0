// The workers of a training, and the clock of each.

#ifndef PENSTOCK_PS_CONSISTENCY_MEMBERSHIP_H_
#define PENSTOCK_PS_CONSISTENCY_MEMBERSHIP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace penstock::ps {

// What a peer may name. They bound what it can make a server remember, and keep
// the arithmetic of clocks from overflowing.
inline constexpr uint32_t kMaxRanks = 65536;
inline constexpr uint64_t kMaxClock = uint64_t{1} << 48;

// One run of one worker. A worker that is started again keeps its rank and
// draws a new incarnation at random.
struct WorkerId {
  uint32_t rank = 0;  // below kMaxRanks
  uint64_t incarnation = 0;
};

// A worker's clock: how many of its steps are done or forgone.
struct RankClock {
  WorkerId worker;
  uint64_t clock = 0;
};

// clang-format off
//   state       event  guard                      next
//   ----------  -----  -------------------------  --------
//   assembling  join   all expected are there     running
//   assembling  tick   assemble_timeout is over   running
//   any         drain  -                          draining
// clang-format on
//
// All other events leave the state as it is. Who is a member changes by joins,
// heartbeats, leaves, losses and leases that end, in every state but draining.
//
// A member is waited for from step `required_from` on. Its progress is the
// larger of that and its clock: no step before it is waited for. The floor, the
// least progress of all, is what tables go by. It never goes back, whoever
// comes and goes, and stays where it is while the run assembles.
//
// Where a worker begins that joins:
//
// clang-format off
//   while                    its clock                     required from
//   -----------------------  ----------------------------  --------------------
//   the run assembles, or    the floor, or the oldest      the floor
//   nobody is there          step that a table is at, if
//                            that is less
//   others are at work       the same                      the step after the
//                                                          newest that a table
//                                                          is at, and never
//                                                          below the floor
// clang-format on
//
// Its clock is never less than the one that its rank has had, and then its
// progress is not, either: no step of a worker that died is taken twice, and
// none is asked of the worker that replaces it.
//
// No clock, no thread, no I/O: the caller passes the time, by a monotonic
// clock. An event takes O(log members). Remembers at most kMaxRanks ranks.
class Membership {
 public:
  enum class State { kAssembling, kRunning, kDraining };

  struct Options {
    uint32_t expected_workers = 1;
    // How long a member may be silent. Longer than a garbage collection or the
    // hiccup of a suspended laptop, shorter than a user's patience.
    absl::Duration lease = absl::Seconds(10);
    // How long after the first join the run starts without those who are
    // missing.
    absl::Duration assemble_timeout = absl::Seconds(60);
    // From a checkpoint: the floor, and the clock of each rank.
    uint64_t floor = 0;
    std::vector<RankClock> clocks;
  };

  // The standing of a worker, by the id that it gives.
  enum class Standing {
    kMember,
    kNotMember,   // never joined, has left, or its lease is over
    kSuperseded,  // another incarnation has had the rank after it
    kInvalid,     // no such rank
    kDraining,
  };

  // The steps that the synchronous tables are at; see above. nullopt in a call:
  // there are no such tables, and the floor stands for both.
  struct Steps {
    uint64_t oldest = 0;
    uint64_t newest = 0;
  };

  struct Changes {
    std::vector<std::string> notes;  // lines for the log: joins, deaths, starts
    std::vector<uint32_t> departed;  // ranks that have lost their member
  };

  // Returns INVALID_ARGUMENT, which names the option.
  static absl::StatusOr<Membership> Create(const Options& options);

  // A join supersedes another incarnation of the same rank; one that was
  // superseded itself is refused.
  Standing Join(const WorkerId& worker, absl::Time now,
                const absl::optional<Steps>& steps, Changes* changes);
  // Renews the lease of a member. Lets a worker join that is none, unless
  // another has its rank or it has left.
  Standing Heartbeat(const WorkerId& worker, absl::Time now,
                     const absl::optional<Steps>& steps, Changes* changes);
  // An orderly good-bye. Like Lost(), it does nothing if `worker` is no member.
  void Leave(const WorkerId& worker, Changes* changes);
  // The connection broke.
  void Lost(const WorkerId& worker, Changes* changes);
  // Ends the leases that are over and, if it is time, assembling.
  void Tick(absl::Time now, Changes* changes);
  void Drain() { state_ = State::kDraining; }

  // Returns what `worker` is. Check() renews the lease of a member: any call is
  // a sign of life.
  Standing StandingOf(const WorkerId& worker) const;
  Standing Check(const WorkerId& worker, absl::Time now);

  // Sets a member's clock, which never goes back.
  void Advance(uint32_t rank, uint64_t clock, absl::Time now);

  State state() const { return state_; }
  bool assembled() const { return state_ != State::kAssembling; }
  uint64_t floor() const { return floor_; }
  size_t size() const { return members_.size(); }
  uint32_t expected_workers() const { return options_.expected_workers; }
  uint64_t lost() const { return lost_; }
  bool IsMember(const WorkerId& worker) const;
  bool HasMember(uint32_t rank) const { return members_.count(rank) > 0; }

  // Returns the clock of a rank, 0 for one that never joined.
  uint64_t ClockOf(uint32_t rank) const;
  // Returns the clocks of all ranks that ever joined, in order of rank.
  std::vector<RankClock> Clocks() const;

  // Returns how many members' progress is less than `step`, but at most `most`.
  size_t CountBelow(uint64_t step, size_t most) const;
  // Returns the ranks of the slowest of them, at most `most`, ascending.
  std::vector<uint32_t> Below(uint64_t step, size_t most) const;

  // The member of least progress.
  struct Laggard {
    uint32_t rank;
    uint64_t clock;
    uint64_t behind;   // steps, of the one of most progress
    absl::Time since;  // when it did its last step, or joined
  };
  absl::optional<Laggard> Slowest() const;

  // Returns when to call Tick() at the latest.
  absl::Time NextDeadline() const;

 private:
  struct Member {
    uint64_t incarnation;
    absl::Time expires;
    uint64_t clock;
    uint64_t required_from;
    absl::Time advanced;
  };
  // Of a rank that ever joined. One `previous` is enough to tell two processes
  // apart that were given the same rank, so that they do not supersede each
  // other for ever.
  struct Past {
    uint64_t incarnation;
    absl::optional<uint64_t> previous;
    uint64_t clock;
    bool has_left;
  };

  explicit Membership(const Options& options);

  void Add(const WorkerId& worker, absl::Time now,
           const absl::optional<Steps>& steps, Changes* changes);
  void Remove(uint32_t rank, Changes* changes);
  void Lose(uint32_t rank, const char* reason, Changes* changes);
  void Renew(uint32_t rank, absl::Time now);
  void Settle(absl::Time now, Changes* changes);
  void RaiseFloor();
  bool WasSuperseded(const WorkerId& worker) const;
  static uint64_t ProgressOf(const Member& member);

  Options options_;
  State state_ = State::kAssembling;
  std::map<uint32_t, Member> members_;  // by rank
  std::map<uint32_t, Past> past_;       // by rank, members' too
  std::set<std::pair<uint64_t, uint32_t>> by_progress_;
  std::set<std::pair<absl::Time, uint32_t>> by_expiry_;
  uint64_t floor_ = 0;
  absl::Time assemble_deadline_ = absl::InfiniteFuture();
  uint64_t lost_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_MEMBERSHIP_H_
