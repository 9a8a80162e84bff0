// A point in a training at which each push is wholly in or wholly out, at all
// tables and servers.

#ifndef PENSTOCK_PS_CONSISTENCY_CUT_H_
#define PENSTOCK_PS_CONSISTENCY_CUT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/membership.h"
#include "ps/consistency/policy.h"

namespace penstock::ps {

// A point between pushes. In a model with a synchronous table, a push is in the
// cut if its clock is below `version`. In another model, its clock must be
// below the clock of its rank in `clocks`; the clock of a missing rank is 0.
struct CutPoint {
  absl::optional<uint64_t> version;
  std::vector<RankClock> clocks;

  static CutPoint OfVersion(uint64_t version) { return {version, {}}; }
  uint64_t ClockOf(uint32_t rank) const;
};

// The progress of a server that has stopped applying new pushes.
struct HeldSteps {
  // The highest version of the synchronous tables.
  uint64_t version = 0;
  // One entry per rank: 1 + the clock of the last push that a table has begun
  // to apply, or the rank's clock in the restored checkpoint.
  std::vector<RankClock> begun;
};

// Returns the first cut that all servers can still reach. `is_synchronous`: the
// model has a synchronous table.
CutPoint FirstCutOf(const std::vector<HeldSteps>& servers, bool is_synchronous);

// Decides which pushes may be applied.
class CutGate {
 public:
  // `restored` has the clocks of the restored checkpoint.
  explicit CutGate(const std::vector<RankClock>& restored = {});

  // Stops all pushes, except those that have already been let through.
  void Close() { state_ = State::kClosed; }
  // Lets through only pushes in the cut.
  void OpenUpTo(CutPoint cut);
  void Open() { state_ = State::kOpen; }

  bool LetsThrough(const PushId& push) const;
  // Records that the push was let through.
  void Note(const PushId& push);

  // Returns true if a push outside the cut was let through.
  bool IsPast(const CutPoint& cut) const;

  const CutPoint* cut() const {
    return state_ == State::kUpTo ? &cut_ : nullptr;
  }
  std::vector<RankClock> begun() const;

 private:
  enum class State { kOpen, kClosed, kUpTo };

  State state_ = State::kOpen;
  CutPoint cut_;
  std::map<uint32_t, uint64_t> begun_;  // by rank; see HeldSteps
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CONSISTENCY_CUT_H_
