// Decides how often a spinning thread reads the clock.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPIN_PACE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPIN_PACE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// Counts rounds of polls. A round over shared memory takes some ten
// nanoseconds, less than reading the clock and yielding. A round over many
// sockets takes tens of microseconds. The pace follows the measured time of the
// rounds, so that a spin exceeds its budget by one slow round at most.
//
// Use one object for all spins of a thread. Otherwise each spin would begin
// with several rounds without reading the clock. Thread-compatible.
class SpinPace {
 public:
  // Limits the rounds between two readings of the clock.
  static constexpr int kMostRounds = 8;
  // Limits the time between two readings of the clock, in nanoseconds, unless
  // one round takes longer. Small compared with the usual budget of a spin, 50
  // us and more.
  static constexpr int64_t kNanos = 10 * 1000;

  // Begins a spin at `now`, or continues after a yield that ended at `now`.
  void Resume(absl::Time now) {
    resumed_ = now;
    rounds_ = 0;
  }
  // Counts a round. Returns true if the thread should now read the clock, and
  // call Look().
  bool OnRound() { return ++rounds_ >= period_; }
  // Adapts the pace to the rounds since Resume(), which ended at `now`.
  void Look(absl::Time now) {
    const int64_t took = absl::ToInt64Nanoseconds(now - resumed_);
    const int64_t fits = took <= 0 ? kMostRounds : rounds_ * kNanos / took;
    period_ = fits < 1             ? 1
              : fits > kMostRounds ? kMostRounds
                                   : static_cast<int>(fits);
  }

 private:
  int period_ = kMostRounds;
  int rounds_ = 0;  // since resumed_
  absl::Time resumed_;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPIN_PACE_H_
