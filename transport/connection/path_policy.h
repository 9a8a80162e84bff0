// Judges and describes the path of a session, for front ends.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_POLICY_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_POLICY_H_

#include <string>

#include "absl/status/status.h"
#include "transport/session/events.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace connection {

// Returns UNAVAILABLE, with the reason and the remedy, if the settings require
// a fabric that does not carry the session.
absl::Status CheckPath(const Settings& settings,
                       const session::PathDescription& path);

// Returns whether the settings let tcp carry a session.
bool ToleratesTcp(const Settings& settings);

// Returns the path in one line, for the log: "shm (ring 1 MiB)", or "tcp; not
// better because the peer is on another host".
std::string PathText(const session::PathDescription& path);

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_POLICY_H_
