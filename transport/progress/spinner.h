// Lets the library's own threads poll for a while before they sleep.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
#define PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/real_time.h"
#include "transport/progress/spin_policy.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace progress {

// Polls a PollSet and descriptors before its thread sleeps, for as long as
// SpinPolicy says. Used by one thread. transport/grpc/polling/polling_engine.cc
// does the same for threads that wait in gRPC.
class Spinner {
 public:
  // Does the thread's other work. Returns true if there was any.
  using Turn = std::function<bool()>;

  // Makes a spinner for `set`, which must outlive it.
  Spinner(PollSet* set, PollingMode mode) : set_(set), policy_(mode) {}

  // Waits until the set delivers input, until look() or sleep() has done work,
  // or until sleep() returns. look() serves the sockets and must not block.
  // While polling, calls look() now and then, or in each round if the set is
  // empty. If the set always has input, each wait is short, and calls look()
  // when Turns decides that look() is due. `watches` is true if look() may find
  // input of a peer. If it is false, and the set is empty, sleeps immediately.
  void Wait(bool watches, const Turn& look, const Turn& sleep);
  // Returns true if the set may have input for which no doorbell rings. The
  // caller must then wait again soon, or make another thread poll.
  bool TakeLeftInput() { return std::exchange(has_left_input_, false); }

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
  // True if the set may have input for which no doorbell rings.
  bool has_left_input_ = false;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_SPINNER_H_
