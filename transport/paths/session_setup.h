// What each front end does alike with the session of a connection until a path
// carries it.

#ifndef PENSTOCK_TRANSPORT_PATHS_SESSION_SETUP_H_
#define PENSTOCK_TRANSPORT_PATHS_SESSION_SETUP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/paths/side_paths.h"
#include "transport/session/session.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace paths {

// Both sides say hello right after the negotiation. That takes a few round
// trips, even if some packets are lost.
constexpr absl::Duration kHelloLimit = absl::Seconds(5);
// How long the two sides may take to agree on a path, or on having none.
// Attempts follow one another: one over shm has two seconds, one over verbs
// five. The rest is for packets that are lost.
constexpr absl::Duration kSettleLimit = absl::Seconds(15);
// How long the rest of a session may take to be written when it has ended. A
// peer that does not read in time does not get all of it.
constexpr absl::Duration kLingerLimit = absl::Seconds(5);

// The reasons for which those who exceed the first two are dropped.
absl::Status NoHelloError();
absl::Status NoPathError();

// Returns a configuration in which the limits on what a peer may send are still
// the defaults. See SidePaths for `is_private`.
session::Config SessionConfig(const Settings& settings, bool is_client,
                              uint8_t version, bool is_private);

// For SessionEvents::OnListenWanted(): ends the earlier attempt, and waits for
// the client with a new token.
void ListenAnew(session::Session* session, SidePaths* side_paths,
                const SidePaths::Done& done);

// Tells the session what came of an attempt, unless another one has begun.
void EndAttempt(session::Session* session, uint32_t epoch,
                const std::string& fabric,
                absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_SESSION_SETUP_H_
