// Sets up the session of a connection, from the hello until a path carries it:
// what gRPC's front end and the one of transport/rpc have in common.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_
#define PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/connection/heartbeat.h"
#include "transport/connection/keepalive.h"
#include "transport/paths/side_paths.h"
#include "transport/session/session.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace connection {

// How long the hellos may take. Both sides say hello right after the
// negotiation, which takes a few round trips even if some packets are lost.
constexpr absl::Duration kHelloLimit = absl::Seconds(5);
// How long the two sides may take to agree on a path, or on none. Attempts
// follow one another: one over shm has two seconds, one over verbs five. The
// rest allows for lost packets.
constexpr absl::Duration kSettleLimit = absl::Seconds(15);
// How long what is left to write may take after a session has ended. A peer
// that does not read in time does not get all of it.
constexpr absl::Duration kLingerLimit = absl::Seconds(5);

// Why a connection that exceeds kHelloLimit or kSettleLimit is dropped.
absl::Status NoHelloError();
absl::Status NoPathError();

// Returns the configuration of a session by the settings. The limits on what a
// peer may send are the defaults: a caller that has others sets them.
// `side_paths` says what is offered.
session::Config SessionConfig(const Settings& settings, bool is_client,
                              uint8_t version,
                              const paths::SidePaths& side_paths);

// Returns the heartbeat of a connection by its settings and its keepalive.
connection::Heartbeat MakeHeartbeat(
    const Settings& settings, const connection::Keepalive::Config& keepalive);

// Handles SessionEvents::OnListenWanted(): ends the earlier attempt, and
// listens for the client with a new token.
void ListenAnew(session::Session* session, paths::SidePaths* side_paths,
                const paths::SidePaths::Done& done);

// Reports the result of an attempt to the session, unless another has begun.
void EndAttempt(session::Session* session, uint32_t epoch,
                const std::string& fabric,
                absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_SESSION_SETUP_H_
