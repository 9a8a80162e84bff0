// gRPC's keepalive: checks that the peer is alive, and that it does not ping
// too often. Pure: the caller brings the time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// Pings a peer of which nothing was heard for a while.
//
//   state     event                        action           next
//   kQuiet    time passed, may ping        ping             kPinged
//   kQuiet    time passed, may not         wait for `time`  kQuiet
//   kQuiet    something received           wait for `time`  kQuiet
//   kPinged   something received           wait for `time`  kQuiet
//   kPinged   timeout passed               peer is dead     kDead
//
// Anything that the peer sends proves that it lives, so a pong is nothing
// special. After the algorithm of gRPC's HTTP/2 transport, proposal A8.
class Keepalive {
 public:
  struct Config {
    absl::Duration time = absl::InfiniteDuration();  // infinite: never ping
    absl::Duration timeout = absl::Seconds(20);
    bool permit_without_calls = false;
    // Pings in a row without a frame of ours between them; 0: no limit.
    int max_pings_without_data = 2;
  };
  enum class Action { kNone, kPing, kPeerIsDead };

  Keepalive(const Config& config, absl::Time now)
      : config_(config), last_heard_(now) {}

  bool enabled() const { return config_.time < absl::InfiniteDuration(); }
  void OnReceived(absl::Time now);
  // A frame other than a ping was sent.
  void OnDataSent() { pings_without_data_ = 0; }

  // When OnTimer() has something to do, if nothing is received before;
  // infinite: never.
  absl::Time NextTimer() const;
  // The same for a timer that is not set anew when something is received: a
  // pong may bring the next ping nearer than the end of the timeout.
  absl::Time NextLook(absl::Time now) const {
    return std::min(NextTimer(), now + config_.time);
  }
  Action OnTimer(absl::Time now, bool has_calls);

 private:
  const Config config_;
  absl::Time last_heard_;  // or last looked in vain
  absl::Time pinged_ = absl::InfiniteFuture();
  int pings_without_data_ = 0;
};

// The server's side: clients that ping more often than it allows are told so
// and cut off.
class PingPolice {
 public:
  struct Config {
    absl::Duration min_interval = absl::Minutes(5);
    bool permit_without_calls = false;
    int max_strikes = 2;  // 0: no limit
  };

  explicit PingPolice(const Config& config) : config_(config) {}

  // True: one too many.
  bool OnPing(absl::Time now, bool has_calls);
  // A frame other than a pong was sent: the peer may ask about that.
  void OnDataSent();

 private:
  const Config config_;
  absl::Time last_ping_ = absl::InfinitePast();
  int strikes_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
