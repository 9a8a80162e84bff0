// Decides when the lifeline of a busy session needs a sign of life. Pure.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_
#define PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "transport/connection/keepalive.h"
#include "transport/session/counters.h"

namespace penstock {
namespace connection {

// While a fast path carries a session, its lifeline may be silent. Load
// balancers, proxies and NATs drop a connection that is silent for too long.
// Therefore each side rings the lifeline once an interval while the session is
// in use.
//
//   state     event                              action              next
//   kIdle     a path comes into use              start timer         kRunning
//   kIdle     activity since the last beat       beat, start timer   kRunning
//   kRunning  timer, activity since the last     beat, start timer   kRunning
//   kRunning  timer, no activity                 -                   kIdle
//
// The lifeline of a session in use is silent for at most one interval. An idle
// session is as silent as an idle HTTP/2 connection. The caller's timer holds
// the state: the timer is pending in kRunning.
class Heartbeat {
 public:
  // Beats at least as often as `keepalive` would ping a silent connection.
  // Zero: never beats.
  Heartbeat(absl::Duration interval, const Keepalive::Config& keepalive)
      : interval_(std::min(interval,
                           std::max(keepalive.time, absl::Milliseconds(10)))) {}

  bool enabled() const { return interval_ > absl::ZeroDuration(); }
  absl::Duration interval() const { return interval_; }

  enum class Action { kNone, kStartTimer, kBeat };

  // Call this while a path is in use and the timer is not pending. kBeat: start
  // the timer as well.
  Action OnUse(const session::Counters& counters) {
    if (!enabled() || ActivityOf(counters) == seen_) return Action::kNone;
    const bool is_first = seen_ == 0;
    seen_ = ActivityOf(counters);
    return is_first ? Action::kStartTimer : Action::kBeat;
  }
  // Returns true if a beat is due. If so, start the timer again.
  bool OnTimer(const session::Counters& counters) {
    if (ActivityOf(counters) == seen_) return false;
    seen_ = ActivityOf(counters);
    return true;
  }

 private:
  // Returns a count of all input and of the stream frames sent. Leaves beats
  // out, because two idle sides would answer each other's beats for ever.
  static uint64_t ActivityOf(const session::Counters& counters) {
    return counters.inputs + counters.stream_frames_sent;
  }

  const absl::Duration interval_;
  uint64_t seen_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_
