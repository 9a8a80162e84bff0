// A virtual clock, which a simulation advances without waiting.

#ifndef PENSTOCK_TESTS_PS_SIMULATION_VIRTUAL_TIME_H_
#define PENSTOCK_TESTS_PS_SIMULATION_VIRTUAL_TIME_H_

#include <cstdint>

#include "absl/time/time.h"

namespace penstock::ps {

// Programs that link this library have their own steady clock, their own timed
// waits by that clock, and their own std::random_device. The clock shows the
// real time plus the skipped time.

// Skips the time until the first deadline of a thread that sleeps, or that
// waits by a base::SteadyCondVar. If no deadline is within `most`, skips
// nothing and returns false. Call this while all other threads wait.
bool SkipToNextDeadline(absl::Duration most);

// Skips `time`, and wakes the threads whose deadline has come.
void SkipTime(absl::Duration time);

// Makes the numbers of std::random_device depend on `seed` alone.
void SeedRandomDevice(uint64_t seed);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SIMULATION_VIRTUAL_TIME_H_
