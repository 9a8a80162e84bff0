// Checks recorded histories of one value, without knowing how servers work.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_LINEARIZABILITY_H_
#define PENSTOCK_TESTS_PS_REPLICATION_LINEARIZABILITY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace penstock::ps::replication {

// One call, as its caller saw it.
struct Operation {
  enum Kind { kPush, kPull } kind = kPush;
  absl::Time called;
  absl::Time answered = absl::InfiniteFuture();  // or never
  // The amount that a push adds, or that a pull has returned. Sums wrap around.
  uint64_t value = 0;
  // The order in which calls are tried: lower numbers first. Affects only the
  // time of the search.
  uint64_t guess = 0;
};

enum class Judgement { kLinearizable, kNot, kTooLarge };

// Returns true if each call can have taken effect at one moment between call
// and answer (Herlihy and Wing, 1990). A push adds its value, and a pull
// returns the sum of all pushes before. A push without an answer may have taken
// effect at any moment after its call, or never.
//
// Searches as in Wing and Gong (1993), and remembers visited states as in
// Lowe (2017). Pushes commute, so the set of calls that have taken effect is
// the whole state. Gives up after `max_states` states.
Judgement JudgeHistory(const std::vector<Operation>& history,
                       size_t max_states = 100000);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_LINEARIZABILITY_H_
