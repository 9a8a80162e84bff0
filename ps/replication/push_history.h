// Recognises pushes that are repeated, at a primary and at its successor.

#ifndef PENSTOCK_PS_REPLICATION_PUSH_HISTORY_H_
#define PENSTOCK_PS_REPLICATION_PUSH_HISTORY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/membership.h"
#include "ps/replication/log.h"

namespace penstock::ps::replication {

// The last push of each rank, of all entries up to some sequence number.
// Replicas that have recorded the same entries have the same history.
//
//   a push of clock c, by a worker whose       verdict
//   rank's next clock is e
//   -----------------------------------------  -----------
//   rank or clock out of bounds                invalid
//   another incarnation has the rank, and had  superseded
//   taken it from this worker
//   the worker has not joined                  not joined
//   c >= e                                     new
//   c = e - 1, pushed by this worker           repeated
//   otherwise                                  passed
//
// The first matching line decides. A join is judged in the same way: superseded
// as above, repeated if the worker has the rank, and new otherwise. Like
// Membership, remembers one earlier incarnation of each rank.
//
// Remembers at most kMaxRanks ranks. Pure.
class PushHistory {
 public:
  enum class Verdict {
    kNew,
    kRepeated,    // the entry with Judgement::seq has this push
    kPassed,      // the rank's step is done, by another push or worker
    kSuperseded,  // another process has taken the rank
    kNotJoined,
    kInvalid,
  };
  struct Judgement {
    Verdict verdict = Verdict::kNew;
    uint64_t seq = 0;
  };

  Judgement Judge(const WorkerPush& push) const;
  Judgement JudgeJoin(const WorkerId& worker) const;
  // Records an entry whose pushes or join were judged kNew.
  void Record(const Entry& entry);

  // Returns the worker that has the rank, with the clock after its rank's last
  // push. Returns nullopt for an unknown rank.
  absl::optional<RankClock> ClockOf(uint32_t rank) const;

  friend bool operator==(const PushHistory& a, const PushHistory& b) {
    return a.ranks_ == b.ranks_;
  }

 private:
  struct Rank {
    uint64_t incarnation = 0;
    absl::optional<uint64_t> previous;  // incarnation before
    uint64_t joined = 0;                // sequence number of the join
    uint64_t clock = 0;                 // after the last push
    uint64_t pusher = 0;                // incarnation of the last push
    uint64_t pushed = 0;                // sequence number of the last push

    friend bool operator==(const Rank& a, const Rank& b) {
      return a.incarnation == b.incarnation && a.previous == b.previous &&
             a.joined == b.joined && a.clock == b.clock &&
             a.pusher == b.pusher && a.pushed == b.pushed;
    }
  };

  void RecordJoin(const WorkerId& worker, uint64_t seq);

  std::map<uint32_t, Rank> ranks_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_PUSH_HISTORY_H_
