// Decides when the lifeline of an active session needs a heartbeat. Does no
// I/O.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_
#define PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "transport/connection/keepalive.h"
#include "transport/session/counters.h"

namespace penstock {
namespace connection {

// Decides when to send a heartbeat on a session's lifeline. While a fast path
// carries a session, its lifeline may be silent. Load balancers, proxies and
// NATs drop connections that are silent for too long. Each side therefore sends
// one heartbeat per interval while the session is in use.
//
//   state     event                              action              next
//   kIdle     a path comes into use              start timer         kRunning
//   kIdle     activity since the last beat       beat, start timer   kRunning
//   kRunning  timer, activity since the last     beat, start timer   kRunning
//   kRunning  timer, no activity                 -                   kIdle
//
// While a session is in use, its lifeline is silent for at most one interval.
// An idle session sends nothing, like an idle HTTP/2 connection. The caller's
// timer holds the state: the timer is pending in kRunning.
class Heartbeat {
 public:
  // Sends a heartbeat once per `interval`, and at least as often as `keepalive`
  // pings a silent connection. An interval of zero means no heartbeats.
  Heartbeat(absl::Duration interval, const Keepalive::Config& keepalive)
      : interval_(std::min(interval,
                           std::max(keepalive.time, absl::Milliseconds(10)))) {}

  bool enabled() const { return interval_ > absl::ZeroDuration(); }
  absl::Duration interval() const { return interval_; }

  enum class Action { kNone, kStartTimer, kBeat };

  // Returns the action when a session is used. Call while a path is in use and
  // the timer is not pending. After kBeat, the caller also starts the timer.
  Action OnUse(const session::Counters& counters) {
    if (!enabled() || ActivityOf(counters) == seen_) return Action::kNone;
    const bool is_first = seen_ == 0;
    seen_ = ActivityOf(counters);
    return is_first ? Action::kStartTimer : Action::kBeat;
  }
  // Returns true if a beat is due. The caller then starts the timer again.
  bool OnTimer(const session::Counters& counters) {
    if (ActivityOf(counters) == seen_) return false;
    seen_ = ActivityOf(counters);
    return true;
  }

 private:
  // Returns the number of received packets and sent stream frames. Heartbeats
  // do not count: otherwise two idle sides would answer each other's heartbeats
  // forever.
  static uint64_t ActivityOf(const session::Counters& counters) {
    return counters.inputs + counters.stream_frames_sent;
  }

  const absl::Duration interval_;
  uint64_t seen_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_HEARTBEAT_H_
