// Detects dead peers, and keeps proxies from dropping a silent connection.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_LIVENESS_H_
#define PENSTOCK_TRANSPORT_CONNECTION_LIVENESS_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "transport/connection/config.h"
#include "transport/connection/heartbeat.h"
#include "transport/connection/keepalive.h"
#include "transport/connection/timer.h"
#include "transport/session/session.h"

namespace penstock {
namespace connection {

// The keepalive and the heartbeat of a session, and their timers. Call all
// functions under the connection's lock.
class Liveness {
 public:
  // Requires that all pointers outlive this object. `has_calls` returns true if
  // calls are open, and is called under the lock.
  Liveness(const Config& config, session::Session* session, Host* host,
           std::function<bool()> has_calls);

  // Starts keepalive. Calls `pinged`, which may be null, after each ping of
  // keepalive.
  void Start(std::function<void()> pinged);
  // Cancels all timers. Call when the session has ended.
  void End();

  // Starts the heartbeat if a fast path is in use. Call before each flush of
  // the session. Usually does nothing, because the timer is already pending.
  void SyncHeartbeat() {
    if (!heartbeat_timer_.pending() && session_->path().in_use()) Beat();
  }
  // Tells keepalive what the session has received and sent since the last call.
  // Call this function after each flush. `now` returns Executor::Now(); a
  // template avoids a virtual call.
  template <typename Clock>
  void Observe(Clock now) {
    const session::Counters& counters = session_->counters();
    if (counters.inputs != inputs_) {
      inputs_ = counters.inputs;
      if (keepalive_.enabled()) keepalive_.OnReceived(now());
    }
    if (counters.stream_frames_sent != stream_frames_sent_) {
      stream_frames_sent_ = counters.stream_frames_sent;
      keepalive_.OnDataSent();
      police_.OnDataSent();
    }
  }
  // Counts a ping from a client. Returns false if the client pings too often.
  bool MayPing() { return !police_.OnPing(Now(), has_calls_()); }

 private:
  absl::Time Now() const { return host_->executor()->Now(); }
  void StartKeepaliveTimer();
  void OnKeepaliveTimer();
  void Beat();
  void StartHeartbeatTimer();
  void OnHeartbeatTimer();

  session::Session* const session_;
  Host* const host_;
  const std::function<bool()> has_calls_;
  std::function<void()> pinged_;
  const absl::Duration timeout_;
  Keepalive keepalive_;
  PingPolice police_;
  Heartbeat heartbeat_;
  Timer keepalive_timer_;
  Timer heartbeat_timer_;
  uint64_t inputs_ = 0;
  uint64_t stream_frames_sent_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_LIVENESS_H_
