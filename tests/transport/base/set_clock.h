// A system clock that a test can set, for its own process only.

#ifndef PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
#define PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_

#include "absl/time/time.h"

namespace penstock {

// Shifts the time of day that this process reads by `offset`. The kernel's
// clock is unchanged. A wait until a time of day thus behaves as if the clock
// had been set back by `offset` during the wait. Programs that link this file
// have their own clock_gettime() and gettimeofday().
void SetClockBy(absl::Duration offset);

// Shifts the steady clock forward by a further `offset`. Waits still end by the
// kernel's unshifted clock.
void MoveSteadyClockBy(absl::Duration offset);

// Stops the steady clock. From now on only MoveSteadyClockBy() moves the clock.
void StopSteadyClock();

}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
