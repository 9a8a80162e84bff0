// gRPC's keepalive. Checks if the peer is alive, and if the peer pings too
// often. Does no I/O: the caller passes the time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// The keepalive of one connection: pings a silent peer.
//
//   state     event                        action           next
//   kQuiet    time passed, may ping        ping             kPinged
//   kQuiet    time passed, may not         wait for `time`  kQuiet
//   kQuiet    something received           wait for `time`  kQuiet
//   kPinged   something received           wait for `time`  kQuiet
//   kPinged   timeout passed               peer is dead     kDead
//   kPinged   OnTimer() is called late     extend the wait  kPinged
//
// A late call shows that this process, or its thread, did not run. On a busy
// machine, the peer did not run either, or its answer is unread. The timeout
// therefore excludes such delays. After a delay of more than LookInterval(),
// the timeout begins again.
//
// Any input proves that the peer is alive, not only a pong. Follows the
// algorithm of gRPC's HTTP/2 transport, proposal A8.
class Keepalive {
 public:
  struct Config {
    absl::Duration time = absl::InfiniteDuration();  // infinite: never ping
    absl::Duration timeout = absl::Seconds(20);
    bool permit_without_calls = false;
    // Caps the pings in a row without a data frame between them. Zero means no
    // limit.
    int max_pings_without_data = 2;
  };
  enum class Action { kNone, kPing, kPeerIsDead };

  Keepalive(const Config& config, absl::Time now)
      : config_(config), last_heard_(now) {}

  bool enabled() const { return config_.time < absl::InfiniteDuration(); }
  void OnReceived(absl::Time now);
  // Resets the count of pings. Call when a frame other than a ping was sent.
  void OnDataSent() { pings_without_data_ = 0; }

  // Returns the time of the next OnTimer() if no input arrives before. Returns
  // infinity if no call is needed.
  absl::Time NextTimer() const;
  // Returns when to call OnTimer() next, for a caller that does not restart its
  // timer when input arrives. At most config.time after `now`, because a pong
  // before the timeout may make the next ping due earlier. At most
  // LookInterval() after `now` while a ping is unanswered.
  absl::Time NextLook(absl::Time now);
  Action OnTimer(absl::Time now, bool has_calls);

 private:
  absl::Duration LookInterval() const;

  const Config config_;
  absl::Time last_heard_;  // the last input, or the last skipped ping
  absl::Time pinged_ = absl::InfiniteFuture();
  absl::Time look_ = absl::InfiniteFuture();  // when OnTimer() is due
  int pings_without_data_ = 0;
};

// The server's limit on a client's pings.
class PingPolice {
 public:
  struct Config {
    absl::Duration min_interval = absl::Minutes(5);
    bool permit_without_calls = false;
    int max_strikes = 2;  // 0: no limit
  };

  explicit PingPolice(const Config& config) : config_(config) {}

  // Returns true if the client exceeds the limit. Call for each ping.
  bool OnPing(absl::Time now, bool has_calls);
  // Allows the peer to ping again immediately, and resets the count of pings
  // that came too soon. Call after sending a frame other than a pong.
  void OnDataSent();

 private:
  const Config config_;
  absl::Time last_ping_ = absl::InfinitePast();
  int strikes_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_KEEPALIVE_H_
