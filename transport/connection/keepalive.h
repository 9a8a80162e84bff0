// gRPC's keepalive: checks that the peer is alive, and that it does not ping
// too often. Pure: the caller brings the time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// Pings a peer that was silent for a while.
//
//   state     event                        action           next
//   kQuiet    time passed, may ping        ping             kPinged
//   kQuiet    time passed, may not         wait for `time`  kQuiet
//   kQuiet    something received           wait for `time`  kQuiet
//   kPinged   something received           wait for `time`  kQuiet
//   kPinged   timeout passed               peer is dead     kDead
//
// Any input proves that the peer is alive, not only a pong. Follows the
// algorithm of gRPC's HTTP/2 transport, proposal A8.
class Keepalive {
 public:
  struct Config {
    absl::Duration time = absl::InfiniteDuration();  // infinite: never ping
    absl::Duration timeout = absl::Seconds(20);
    bool permit_without_calls = false;
    // Limits the pings in a row without a frame of this side between them. Zero
    // sets no limit.
    int max_pings_without_data = 2;
  };
  enum class Action { kNone, kPing, kPeerIsDead };

  Keepalive(const Config& config, absl::Time now)
      : config_(config), last_heard_(now) {}

  bool enabled() const { return config_.time < absl::InfiniteDuration(); }
  void OnReceived(absl::Time now);
  // Call when a frame other than a ping was sent.
  void OnDataSent() { pings_without_data_ = 0; }

  // Returns when OnTimer() has something to do if nothing is received before.
  // Infinite if never.
  absl::Time NextTimer() const;
  // The same for a timer that is not restarted by input. A pong may make the
  // next ping due before the end of the timeout.
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

// The server's side: limits how often a client may ping.
class PingPolice {
 public:
  struct Config {
    absl::Duration min_interval = absl::Minutes(5);
    bool permit_without_calls = false;
    int max_strikes = 2;  // 0: no limit
  };

  explicit PingPolice(const Config& config) : config_(config) {}

  // Call for each ping. Returns true if the client exceeds the limit.
  bool OnPing(absl::Time now, bool has_calls);
  // Call when a frame other than a pong was sent. The peer may ping after that.
  void OnDataSent();

 private:
  const Config config_;
  absl::Time last_ping_ = absl::InfinitePast();
  int strikes_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
