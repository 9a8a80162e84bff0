// Resolves the number of sockets of a session over TCP.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_TCP_SOCKETS_H_
#define PENSTOCK_TRANSPORT_SETTINGS_TCP_SOCKETS_H_

#include "absl/status/statusor.h"

namespace penstock {

// Resolves PENSTOCK_TCP_SOCKETS, which holds for the whole process. Returns 1
// if large messages use the session's first connection only. Returns
// INVALID_ARGUMENT for a bad value.
absl::StatusOr<int> ResolveTcpSockets();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_TCP_SOCKETS_H_
