// The texts that explain the coordinator's decisions.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/consistency/coordinator.h"

namespace penstock::ps {
namespace {

// Limit how many workers a text names, and how many it counts. Each call that
// times out makes a text under the server's lock, and nobody reads a list of
// thousands of workers.
constexpr size_t kMostNamed = 8;
constexpr size_t kMostCounted = 1000;

}  // namespace

std::string Coordinator::Explain(uint64_t clock,
                                 const std::vector<size_t>& policies) const {
  uint64_t step = 0;
  bool waits = false;
  for (size_t at : policies) {
    waits |= clock > policies_[at].Horizon(membership_);
    step = std::max(step, policies_[at].AwaitedStep(clock, membership_));
  }
  if (!waits) return "waits for nothing";
  if (!membership_.assembled()) {
    return absl::StrCat("waits for the run to assemble: ", membership_.size(),
                        " of ", membership_.expected_workers(),
                        " workers have joined");
  }
  if (membership_.size() == 0) return "waits for workers: none has joined";
  const size_t count = membership_.CountBelow(step, kMostCounted);
  if (count == 0) return "waits for a step that is being applied";
  std::vector<std::string> named;
  for (uint32_t rank : membership_.Below(step, kMostNamed)) {
    named.push_back(absl::StrCat("worker ", rank, " (at step ",
                                 membership_.ClockOf(rank), ")"));
  }
  if (count > kMostNamed) {
    named.push_back(absl::StrCat(count == kMostCounted ? "at least " : "",
                                 count - kMostNamed, " more"));
  }
  return absl::StrCat("waits for ", absl::StrJoin(named, ", "));
}

absl::string_view Describe(Coordinator::Verdict verdict) {
  switch (verdict) {
    case Coordinator::Verdict::kAccepted:
      return "accepted";
    case Coordinator::Verdict::kDuplicate:
      return "a step that the worker has done or left out";
    case Coordinator::Verdict::kLate:
      return "late: the step is over";
    case Coordinator::Verdict::kAhead:
      return "a clock ahead of what the worker can have pulled";
    case Coordinator::Verdict::kNotMember:
      return "not a member: it never joined, or has left, or its lease is over";
    case Coordinator::Verdict::kSuperseded:
      return "superseded: another process has taken its rank";
    case Coordinator::Verdict::kReplaced:
      return "replaced by a later push of the same worker";
    case Coordinator::Verdict::kTimedOut:
      return "held too long";
    case Coordinator::Verdict::kTooMany:
      return "too many calls are held";
    case Coordinator::Verdict::kInvalid:
      return "a rank, clock or table out of bounds";
    case Coordinator::Verdict::kDraining:
      return "the server is shutting down";
  }
  return "unknown";
}

}  // namespace penstock::ps
