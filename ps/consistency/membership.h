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

// Limit the ranks and clocks that a peer may name. The limits bound the memory
// that a peer can make a server use, and prevent overflow in the arithmetic of
// clocks.
inline constexpr uint32_t kMaxRanks = 65536;
inline constexpr uint64_t kMaxClock = uint64_t{1} << 48;

// One run of one worker. A restarted worker keeps its rank and draws a new
// incarnation at random.
struct WorkerId {
  uint32_t rank = 0;  // below kMaxRanks
  uint64_t incarnation = 0;
};

// A worker's clock: the number of its steps that are done or skipped.
struct RankClock {
  WorkerId worker;
  uint64_t clock = 0;
};

// Everything that a Membership knows, except times. Two servers with equal
// images treat later events in the same way.
struct MembershipImage {
  struct Rank {
    WorkerId worker;                    // the last one of the rank
    absl::optional<uint64_t> previous;  // incarnation before
    uint64_t clock = 0;
    uint64_t pushed = 0;  // see Membership::PushedClockOf()
    bool has_left = false;
    // The first step that waits for the worker. nullopt if the worker is no
    // member.
    absl::optional<uint64_t> required_from;
  };

  bool assembled = false;
  uint64_t floor = 0;
  uint64_t lost = 0;
  std::vector<Rank> ranks;  // ascending
};

// clang-format off
//   state       event  guard                      next
//   ----------  -----  -------------------------  --------
//   assembling  join   all expected are there     running
//   assembling  tick   assemble_timeout is over   running
//   assembling  start  -                          running
//   any         drain  -                          draining
// clang-format on
//
// All other events leave the state unchanged. Joins, heartbeats, leaves, losses
// and ended leases change the members, in every state except draining.
//
// Steps from `required_from` on wait for a member. The member's progress is the
// larger of `required_from` and its clock: no earlier step waits for the
// member. The floor is the least progress of all members; tables follow the
// floor. The floor never falls. While the run assembles, only ForgoAll() raises
// the floor.
//
// The clocks of a worker that joins:
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
// The clock of a joining worker is never less than the earlier clock of its
// rank, and neither is its progress. A dead worker's step is therefore never
// accepted twice, and its replacement is never asked for such a step.
//
// Pure: no clock, no thread, no I/O. The caller passes the time, by a monotonic
// clock. An event takes O(log members). Remembers at most kMaxRanks ranks.
class Membership {
 public:
  enum class State { kAssembling, kRunning, kDraining };

  struct Options {
    uint32_t expected_workers = 1;
    // Limits the time between two signs of life of a member. Longer than a
    // garbage collection or a short suspend of a laptop, shorter than a user's
    // patience.
    absl::Duration lease = absl::Seconds(10);
    // Limits the time from the first join until the run starts without the
    // missing workers.
    absl::Duration assemble_timeout = absl::Seconds(60);
    // The floor and the clock of each rank, from a checkpoint. The floor is 0
    // in a new training.
    uint64_t floor = 0;
    std::vector<RankClock> clocks;
    // The members of another server, to start from. If a rank has a clock here
    // and above, the larger clock counts.
    absl::optional<MembershipImage> image;
  };

  // The relation of a worker, by its id, to the members.
  enum class Standing {
    kMember,
    kNotMember,   // never joined, has left, or its lease is over
    kSuperseded,  // a later incarnation has taken the rank
    kInvalid,     // no such rank
    kDraining,
  };

  // The oldest and newest steps of the synchronous tables; see above. As an
  // argument, nullopt means that there are no synchronous tables; the floor
  // then replaces both.
  struct Steps {
    uint64_t oldest = 0;
    uint64_t newest = 0;
  };

  struct Changes {
    std::vector<std::string> notes;  // lines for the log: joins, deaths, starts
    std::vector<uint32_t> departed;  // ranks that have lost their member
  };

  // Makes the membership. Returns INVALID_ARGUMENT, which names the invalid
  // option.
  static absl::StatusOr<Membership> Create(const Options& options);

  // Joins a worker, and supersedes another incarnation of the same rank.
  // Refuses an incarnation that was superseded itself.
  Standing Join(const WorkerId& worker, absl::Time now,
                const absl::optional<Steps>& steps, Changes* changes);
  // Renews the lease of a member. Joins a worker that is no member, unless
  // another incarnation has the rank or the worker has left.
  Standing Heartbeat(const WorkerId& worker, absl::Time now,
                     const absl::optional<Steps>& steps, Changes* changes);
  // Removes a worker that leaves in good order. Leave() and Lost() do nothing
  // if `worker` is no member.
  void Leave(const WorkerId& worker, Changes* changes);
  // Removes a worker whose connection broke.
  void Lost(const WorkerId& worker, Changes* changes);
  // Ends expired leases. Starts the run once assemble_timeout is over.
  void Tick(absl::Time now, Changes* changes);
  // Starts the run with the present members.
  void Start(Changes* changes);
  void Drain() { state_ = State::kDraining; }

  // Return the standing of `worker`. Check() also renews a member's lease,
  // because any call is a sign of life.
  Standing StandingOf(const WorkerId& worker) const;
  Standing Check(const WorkerId& worker, absl::Time now);

  // Sets a member's clock. The clock never falls.
  void Advance(uint32_t rank, uint64_t clock, absl::Time now);
  // Ends the steps of a rank below `clock`, even if the rank never joined.
  // Later pushes of the rank for these steps do not count.
  void Forgo(uint32_t rank, uint64_t clock);
  // Ends the steps below `step` for all ranks. Later pushes for these steps do
  // not count.
  void ForgoAll(uint64_t step);

  State state() const { return state_; }
  bool assembled() const { return state_ != State::kAssembling; }
  uint64_t floor() const { return floor_; }
  size_t size() const { return members_.size(); }
  uint32_t expected_workers() const { return options_.expected_workers; }
  uint64_t lost() const { return lost_; }
  bool IsMember(const WorkerId& worker) const;
  bool HasMember(uint32_t rank) const { return members_.count(rank) > 0; }

  // Returns the clock of a rank, or 0 if the rank is unknown.
  uint64_t ClockOf(uint32_t rank) const;
  // Returns the clock after the last push of a rank, or the clock that was
  // restored. Smaller than ClockOf() if the rank joined ahead or has forgone
  // steps.
  uint64_t PushedClockOf(uint32_t rank) const;
  // Returns the clocks of all ranks that ever joined or have forgone a step, in
  // order of rank.
  std::vector<RankClock> Clocks() const;

  // Returns the number of members with progress < `step`, at most `most`.
  size_t CountBelow(uint64_t step, size_t most) const;
  // Returns the ranks of the slowest members with progress < `step`, at most
  // `most`, ascending.
  std::vector<uint32_t> Below(uint64_t step, size_t most) const;

  // The member with the least progress.
  struct Laggard {
    uint32_t rank;
    uint64_t clock;
    uint64_t behind;   // steps behind the fastest member
    absl::Time since;  // time of its last step, or of its join
  };
  absl::optional<Laggard> Slowest() const;

  // Returns the members and clocks, for Options::image.
  MembershipImage Image() const;

  // Returns the latest time for the next Tick().
  absl::Time NextDeadline() const;

 private:
  struct Member {
    uint64_t incarnation;
    absl::Time expires;
    uint64_t clock;
    uint64_t required_from;
    absl::Time advanced;
  };
  // The record of a rank that ever joined or has forgone a step. One earlier
  // incarnation suffices to detect two processes with the same rank, so that
  // they do not supersede each other forever.
  struct Past {
    uint64_t incarnation;
    absl::optional<uint64_t> previous;
    uint64_t clock;
    bool has_left;
    uint64_t pushed;  // see PushedClockOf()
  };

  explicit Membership(const Options& options);

  void Take(const MembershipImage& image);
  void Add(const WorkerId& worker, absl::Time now,
           const absl::optional<Steps>& steps, Changes* changes);
  void Remove(uint32_t rank, Changes* changes);
  void Lose(uint32_t rank, const char* reason, Changes* changes);
  void Renew(uint32_t rank, absl::Time now);
  void Settle(absl::Time now, Changes* changes);
  void RaiseFloor();
  void SetClock(Member* member, uint32_t rank, uint64_t clock);
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
