// How a thread of the library's own waits: it polls for a while, then sleeps.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_

#include <functional>

#include "absl/time/time.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/real_time.h"
#include "transport/progress/spin_policy.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace progress {

// Polls a PollSet before its thread sleeps, for as long as SpinPolicy says.
// (Threads that wait in gRPC do the same in transport/grpc/polling_engine.cc.)
// Belongs to one thread.
class Spinner {
 public:
  // Does what the thread has to do beside the set. Returns whether there was
  // anything.
  using Turn = std::function<bool()>;

  // `set` outlives the spinner.
  Spinner(PollSet* set, PollingMode mode) : set_(set), policy_(mode) {}

  // Waits once: until the set has delivered something, or a turn has done
  // something, or sleep() returns. Calls look(), which must not block, now and
  // then while it polls. If the set always has something, each wait is short,
  // and calls look() when that is due by Turns.
  void Wait(const Turn& look, const Turn& sleep);

 private:
  enum class Spun {
    kNot,    // other threads need the core
    kIdle,   // nothing came
    kFound,  // the set or a turn had something
  };

  Spun Spin(absl::Time start, absl::Duration budget, const Turn& look);
  Spun PollFor(absl::Time start, absl::Duration budget, const Turn& look);
  bool PollLeftInput();

  PollSet* const set_;
  SpinPolicy policy_;
  CoreLosses losses_;
  Turns turns_;
  // Whether the set may have input for which no doorbell rings.
  bool has_left_input_ = false;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
