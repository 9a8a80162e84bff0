// How fast a checkpoint is written while training goes on.

#ifndef PENSTOCK_PS_SERVER_PACE_H_
#define PENSTOCK_PS_SERVER_PACE_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace penstock::ps {

// A checkpoint takes time of the processors, and of the memory that they share,
// from the steps that are taken meanwhile. So it rests after each piece of
// work, in proportion to the processor time that this took; unless nobody
// trains, or it must make haste.
//
// For one thread, whose time it is.
class Pace {
 public:
  struct System {
    std::function<absl::Duration()> processor_time;  // of this thread
    std::function<void(absl::Duration)> sleep;
  };
  static System RealSystem();

  // Has the thread work for `share` of the time, which is above 0. With 1 or
  // more it never rests. `pushes` returns a number that grows with each push.
  Pace(double share, std::function<uint64_t()> pushes,
       System system = RealSystem());

  // Call it after each piece of work. Rests if enough has come together, for
  // kLongest at most.
  void Rest();
  // The same, but does not rest: what was done until now is forgotten.
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

// Returns a Pace's share for so much of the time of all processors that the
// process may use.
double ShareOfOne(double share_of_all);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_PACE_H_
