// A system clock that a test can set, in its own process alone.

#ifndef PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
#define PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_

#include "absl/time/time.h"

namespace penstock {

// Moves what everybody in this process reads as the time of day by `offset`
// from the truth. The kernel goes on with the truth: who waits until a time of
// day waits as if the clock had been set back by `offset` meanwhile. Programs
// that link this have a clock_gettime of their own.
void SetClockBy(absl::Duration offset);

// Moves the steady clock, which nothing else does. Waits go on with the truth.
void MoveSteadyClockBy(absl::Duration offset);

}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_BASE_SET_CLOCK_H_
