// Holds pushes and pulls that cannot be answered yet.

#ifndef PENSTOCK_PS_CONSISTENCY_HELD_CALLS_H_
#define PENSTOCK_PS_CONSISTENCY_HELD_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/membership.h"

namespace penstock::ps {

struct HeldPush {
  uint64_t ticket = 0;
  WorkerId worker;
  uint64_t clock = 0;
  absl::Time deadline;
};

struct HeldPull {
  uint64_t ticket = 0;
  absl::optional<WorkerId> worker;  // nullopt: a reader that is no worker
  uint64_t clock = 0;
  std::vector<size_t> policies;
  absl::Time deadline;
};

// The held calls. Pulls are sorted by their policy and clock, so that finding a
// due pull takes logarithmic time. Holds at most one push and max_pulls pulls
// of each rank. Holds at most max_pulls pulls of all readers together. No two
// calls may have the same ticket.
class HeldCalls {
 public:
  HeldCalls(size_t policies, size_t max_pulls)
      : max_pulls_(max_pulls), waiting_(policies) {}

  // Holds a push. Replaces an earlier push of the same rank, and returns the
  // replaced push.
  absl::optional<HeldPush> Hold(const HeldPush& push);
  // Removes and returns the held push of a rank, if any.
  absl::optional<HeldPush> TakePush(uint32_t rank);

  // Holds a pull that waits for a policy. Returns false if the limit is
  // reached, or if the ticket is held already.
  bool Hold(const HeldPull& pull, size_t policy);
  // Remove and return one pull: a pull that waits for `policy` with a clock up
  // to `horizon`, or any pull of `rank`.
  absl::optional<HeldPull> TakeDue(size_t policy, uint64_t horizon);
  absl::optional<HeldPull> TakePullOf(uint32_t rank);

  // Drops the call with the ticket `ticket`, if that call is held.
  void Cancel(uint64_t ticket);

  // Remove and return one call whose deadline has passed, if any.
  absl::optional<HeldPush> TakeExpiredPush(absl::Time now);
  absl::optional<HeldPull> TakeExpiredPull(absl::Time now);
  absl::Time NextDeadline() const;

  size_t pulls() const { return pulls_.size(); }
  size_t pushes() const { return pushes_.size(); }

 private:
  struct Entry {
    HeldPull pull;
    size_t policy;
  };

  static uint32_t OwnerOf(const HeldPull& pull);
  HeldPull Take(uint64_t ticket);

  const size_t max_pulls_;
  std::map<uint32_t, HeldPush> pushes_;      // by rank
  std::map<uint64_t, uint32_t> push_ranks_;  // by ticket
  std::set<std::pair<absl::Time, uint32_t>> push_deadlines_;
  std::map<uint64_t, Entry> pulls_;  // by ticket
  std::set<std::pair<absl::Time, uint64_t>> pull_deadlines_;
  std::vector<std::set<std::pair<uint64_t, uint64_t>>> waiting_;
  std::map<uint32_t, std::set<uint64_t>> pulls_of_;  // tickets, by owner
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_HELD_CALLS_H_
