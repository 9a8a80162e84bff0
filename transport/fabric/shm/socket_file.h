// UNIX sockets that are files: checks of their directory, and removal of files
// that are no longer used.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace shm {

// Returns OK if only root, this process's user and `peer` can replace a socket
// in `directory`. Otherwise returns FAILED_PRECONDITION, with the remedy. One
// of these users must own the directory, each directory above it and each
// symbolic link on the way. A directory to which others may write must have the
// sticky bit.
//
// In a user namespace that does not map the owner of the root directory, all
// unmapped owners count as root. Some of them may be other users.
absl::Status CheckDirectory(const std::string& directory, uid_t peer);

// Removes socket files of Penstock in `directory` at which no process listens.
// Skips files younger than 10 s, and files that this user may not remove.
void RemoveStaleSockets(const std::string& directory);

// Removes the file when the process exits, unless RemoveSocketFile() is called
// before. A forked child does not remove its parent's files.
// RemoveStaleSockets() removes the file of a killed process. Both functions are
// thread-safe.
void RemoveAtExit(const std::string& path);
void RemoveSocketFile(const std::string& path);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
