// Sets up a connection's session, from the hello to a path. Later tries to get
// a better path.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_
#define PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_

#include <cstdint>
#include <functional>
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

// Limits the time until the peer's hello arrives. Both sides send a hello
// directly after the negotiation. The hellos take a few round trips even if
// some packets are lost.
constexpr absl::Duration kHelloLimit = absl::Seconds(5);
// Limits the time until both sides agree on a path, or agree to use none.
// Attempts run one after another: two seconds for shm, then five seconds for
// verbs. The remaining time allows for lost packets.
constexpr absl::Duration kSettleLimit = absl::Seconds(15);

// Returns the configuration of a connection's session. `side_paths` provides
// the offered fabrics.
session::Config SessionConfig(const Config& config,
                              const paths::SidePaths& side_paths);

// The setup of one session. Call all functions under the connection's lock.
class SessionSetup : public session::PathEvents {
 public:
  // Called with the result of the setup: when a path was chosen, or when the
  // session begins on the lifeline and a side path follows later. The status is
  // OK if the settings allow the path. Otherwise the session is closed, and the
  // status is the reason. Called under the lock.
  using Settled = std::function<void(const absl::Status&)>;

  // `began` is the base::SteadyNow() at which the connection began. All
  // pointers must outlive this object.
  SessionSetup(const Config& config, absl::Time began,
               paths::SidePaths* side_paths, session::Session* session,
               Host* host, Settled settled);

  // Sends the hello. On a server, also listens for side paths.
  void Start();
  // Starts the timeout of the agreement on a path. Call after each use of the
  // session.
  void Sync() {
    if (session_->path().negotiates() && !settle_timer_.pending())
      LimitSettling();
  }
  // Cancels all timers and attempts. Call when the session has ended.
  void End();

  void OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token) override;
  void OnListenWanted() override;
  void OnPathChosen(const session::PathDescription& path) override;

 private:
  // The arguments of a delayed OnConnectWanted().
  struct Deferred {
    uint32_t epoch = 0;
    std::string fabric;
    std::string offer;
    std::string token;
  };

  void OnHelloTimer();
  // Starts the timeout of the agreement on a path. Without this timeout, a peer
  // that does not answer would keep its HalfOpen::Slot, or would be served
  // over a fabric that the policy forbids.
  void LimitSettling();
  void OnSettleTimer(uint32_t epoch);
  void OnDeferTimer();
  void RetryLater();
  void LogPath(const session::PathDescription& path);
  // Returns the callback for an attempt at a side path. Fabrics call it on
  // their own threads.
  paths::SidePaths::Done OnSidePath();
  // Tells the session the result of an attempt, unless a later attempt has
  // begun.
  void EndAttempt(uint32_t epoch, const std::string& fabric,
                  absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);

  const bool is_client_;
  const std::string peer_;
  const Settings settings_;
  paths::SidePaths* const side_paths_;
  session::Session* const session_;
  Host* const host_;
  const Settled settled_;
  paths::HalfOpen::Slot half_open_;
  // True while the first side path must wait for defer_timer_; see
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
