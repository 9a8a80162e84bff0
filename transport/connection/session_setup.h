// Sets up the session of a connection, from the hello until a path carries it,
// and looks for a better path later.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_
#define PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/limited_log.h"
#include "transport/connection/config.h"
#include "transport/connection/path_backoff.h"
#include "transport/connection/timer.h"
#include "transport/paths/side_paths.h"
#include "transport/session/session.h"

namespace penstock {
namespace connection {

// Limits how long the hellos may take. Both sides say hello right after the
// negotiation, which takes a few round trips even if some packets are lost.
constexpr absl::Duration kHelloLimit = absl::Seconds(5);
// Limits how long the two sides may take to agree on a path, or on none.
// Attempts follow one another: one over shm has two seconds, one over verbs
// five. The rest allows for lost packets.
constexpr absl::Duration kSettleLimit = absl::Seconds(15);

// Returns the configuration of a connection's session. `side_paths` has the
// fabrics to offer.
session::Config SessionConfig(const Config& config,
                              const paths::SidePaths& side_paths);

// Call everything under the connection's lock.
class SessionSetup {
 public:
  // `began` is when the connection began, by base::SteadyNow(). All pointers
  // outlive this object.
  SessionSetup(const Config& config, absl::Time began,
               paths::SidePaths* side_paths, session::Session* session,
               Host* host);

  // Says hello. A server waits for side paths.
  void Start();
  // Limits the time to agree on a path. Call after each use of the session.
  void Sync() {
    if (session_->negotiates_path() && !settle_timer_.pending())
      LimitSettling();
  }
  // Cancels everything. Call when the session has ended.
  void End();

  // Each of these handles the session's event of the same name.
  //
  // Returns true if the session begins on the lifeline, and the side path is
  // connected later.
  bool OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token);
  void OnListenWanted();
  // Returns the error with which the session was closed, if the settings do
  // not allow the path.
  absl::Status OnPathChosen(const session::PathDescription& path);

 private:
  // Holds the arguments of the OnConnectWanted() that waits.
  struct Deferred {
    uint32_t epoch = 0;
    std::string fabric;
    std::string offer;
    std::string token;
  };

  void OnHelloTimer();
  // Without this limit, a peer that does not answer would keep its
  // HalfOpen::Place, or be served over a fabric that the policy forbids.
  void LimitSettling();
  void OnSettleTimer(uint32_t epoch);
  void OnDeferTimer();
  void RetryLater();
  void LogPath(const session::PathDescription& path);
  // Returns the callback of an attempt, which fabrics call on their threads.
  paths::SidePaths::Done OnSidePath();
  // Tells the session how an attempt ended, unless another attempt has begun.
  void EndAttempt(uint32_t epoch, const std::string& fabric,
                  absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);

  const bool is_client_;
  const std::string peer_;
  const Settings settings_;
  paths::SidePaths* const side_paths_;
  session::Session* const session_;
  Host* const host_;
  paths::HalfOpen::Place half_open_;
  // True while the first side path is to wait for defer_timer_, see
  // paths::ShortLives.
  bool defers_path_;
  Deferred deferred_;
  Timer hello_timer_;
  Timer settle_timer_;
  Timer defer_timer_;
  Timer retry_timer_;
  PathBackoff backoff_;  // for retry_timer_
  base::LimitedLog log_;
  std::string path_logged_;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_
