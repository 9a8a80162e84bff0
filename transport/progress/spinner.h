// How a thread of the library's own waits: it polls for a while, then sleeps.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_

#include <functional>

#include "absl/time/time.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spin_policy.h"

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
  // then while it polls.
  void Wait(const Turn& look, const Turn& sleep);

 private:
  enum class Spun {
    kNot,    // enough other threads spin
    kIdle,   // nothing came
    kFound,  // the set or a turn had something
  };

  Spun Spin(absl::Duration budget, const Turn& look);
  bool PollFor(absl::Duration budget, const Turn& look);

  PollSet* const set_;
  SpinPolicy policy_;
  CoreLosses losses_;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
