// A system clock that a test can set, for its own process only.

#ifndef PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
#define PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_

#include "absl/time/time.h"

namespace penstock {

// Moves the time of day that this process reads by `offset` from the true one.
// The kernel keeps the true time: a wait until a time of day behaves as if the
// clock had been set back by `offset` meanwhile. Programs that link this have a
// clock_gettime of their own.
void SetClockBy(absl::Duration offset);

// Moves the steady clock, which nothing else moves. Waits keep the true time.
void MoveSteadyClockBy(absl::Duration offset);

}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
