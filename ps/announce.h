// Announces the address at which a parameter server listens.

#ifndef PENSTOCK_PS_ANNOUNCE_H_
#define PENSTOCK_PS_ANNOUNCE_H_

#include <string>

#include "absl/status/status.h"
#include "ps/server_flags.h"

namespace penstock::ps {

// Returns the address of this server for workers and other servers; the server
// listens at `port`.
std::string OwnAddress(const ServerFlags& flags, int port);

// Announces that workers may come: on standard output for the parent process,
// and in the log for people. Fails if standard output cannot be written,
// because a parent process that has started the server on port 0 waits for the
// line.
absl::Status Announce(const ServerFlags& flags, int port);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ANNOUNCE_H_
