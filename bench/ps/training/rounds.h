// Answers a parent's Go() calls, see roles.h.

#ifndef PENSTOCK_BENCH_PS_TRAINING_ROUNDS_H_
#define PENSTOCK_BENCH_PS_TRAINING_ROUNDS_H_

#include <time.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/ps/training/figures.h"

namespace penstock::bench {

// Returns the current time of `clock` in seconds.
inline double SecondsOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double Now() { return SecondsOf(CLOCK_MONOTONIC); }

// Sends an error to the parent and ends the process.
[[noreturn]] void GiveUp(const absl::Status& status);

// Measures a round for each Go() of the parent, until a round fails or the
// parent is done.
[[noreturn]] void ServeRounds(
    const std::function<absl::StatusOr<Figures>()>& round);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_ROUNDS_H_
