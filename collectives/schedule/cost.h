// The cost of a plan, by formula. A simulator checks the formulas against the
// schedules (tests/collectives/schedule).

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_COST_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_COST_H_

#include "collectives/schedule/plan.h"

namespace penstock::collectives {

// The cost of a plan, in elements. Exact if all blocks and segments have the
// same size.
struct Cost {
  // The number of consecutive steps.
  double steps = 0;
  // The number of elements that pass over the busiest link one after another:
  // the duration without latency, in units of the time that one element takes.
  double serial = 0;
  // The elements that all ranks send to others.
  double total = 0;
  // The number of received elements that a rank reduces one after another.
  double reduced = 0;
};

// Returns the cost of a plan that CheckPlan() accepts. For kHierarchical,
// steps, serial and reduced are upper bounds if hosts have different numbers of
// ranks.
Cost CostOf(const Plan& plan);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_COST_H_
