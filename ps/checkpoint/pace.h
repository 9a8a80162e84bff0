// Slows the writing of a checkpoint during training.

#ifndef PENSTOCK_PS_CHECKPOINT_PACE_H_
#define PENSTOCK_PS_CHECKPOINT_PACE_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace penstock::ps::checkpoint {

// A limit on the processor time that writing a checkpoint takes from training
// steps. The writer rests after each piece of work, in proportion to the
// processor time of the work. The writer does not rest if no push has come
// since the last rest, or after a call of Hurry().
//
// Used by one thread, because it measures the processor time of its caller.
class Pace {
 public:
  struct System {
    // Returns the processor time of this thread.
    std::function<absl::Duration()> processor_time;
    std::function<void(absl::Duration)> sleep;
  };
  static System RealSystem();

  // Makes the thread work for `share` of the time. `share` is above 0. A thread
  // with a share of 1 or more never rests. `pushes` returns a number that grows
  // with each push.
  Pace(double share, std::function<uint64_t()> pushes,
       System system = RealSystem());

  // Sleeps if the accumulated rest is at least kShortest. Sleeps for kLongest
  // at most. Call Rest() after each piece of work.
  void Rest();
  // Forgets the work since the last rest, and does not sleep.
  void Hurry();

  static constexpr absl::Duration kShortest = absl::Milliseconds(5);
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

 private:
  const double rest_for_work_;
  const std::function<uint64_t()> pushes_;
  const System system_;
  absl::Duration worked_until_;
  uint64_t last_pushes_;
};

// Returns a share of one processor that equals a share of all processors, for
// Pace.
double ShareOfOne(double share_of_all);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_PACE_H_
