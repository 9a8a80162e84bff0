// Runs the schedules of all ranks in memory.

#ifndef PENSTOCK_TESTS_COLLECTIVES_SCHEDULE_SIMULATOR_H_
#define PENSTOCK_TESTS_COLLECTIVES_SCHEDULE_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace penstock::collectives {

// An element. `sum` counts each addend, and so proves that the result has each
// addend exactly once. `order` depends on the order and grouping of the
// addends: equal values stand for sums with equal bits.
struct Element {
  uint64_t sum = 0;
  uint64_t order = 0;

  bool operator==(const Element& other) const {
    return sum == other.sum && order == other.order;
  }
};

Element Combine(const Element& left, const Element& right);

struct Ran {
  // Empty if all ranks have finished. Otherwise names a rank, its step and the
  // reason.
  std::string error;
  // The counts of Cost: steps in sequence, elements that cross a link in
  // sequence, elements that all ranks send to others, and elements that are
  // reduced in sequence.
  int64_t steps = 0;
  int64_t serial = 0;
  int64_t total = 0;
  int64_t reduced = 0;
};

// Runs `plan` on the buffers of all ranks. `input` is the second buffer of
// all_to_all. A message moves only when both its ranks have reached the
// message's step. Finds:
// - deadlocks;
// - messages whose two sides have different counts;
// - ranges outside a buffer;
// - ranges that two receives of one step write;
// - messages that nobody receives.
Ran Simulate(const Plan& plan, std::vector<std::vector<Element>>* data,
             const std::vector<std::vector<Element>>& input);

// Runs schedules without a plan in the same way.
Ran Simulate(int ranks, const std::function<Schedule(int rank)>& schedule_of,
             std::vector<std::vector<Element>>* data,
             const std::vector<std::vector<Element>>& input);

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_SCHEDULE_SIMULATOR_H_
