// Sockets that are files: checks the directory, and leaves no file behind.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace shm {

// Returns OK if only root, this process's user and `peer` can put another
// socket in the place of one in `directory`. For that, one of them must own the
// directory, each directory above it and each symbolic link on the way, and
// what others may write must have the sticky bit. In a user namespace that does
// not map the owner of the root directory, counts all unmapped owners as root;
// not all of them need be. Else returns FAILED_PRECONDITION, which names the
// remedy.
absl::Status CheckDirectory(const std::string& directory, uid_t peer);

// Removes Penstock's sockets whose process is gone, as far as this user may.
void RemoveStaleSockets(const std::string& directory);

// Removes the file when the process exits, unless RemoveSocketFile() was called
// before. A forked child removes nothing of its parent's. A process that is
// killed leaves its file to RemoveStaleSockets(). Both are thread-safe.
void RemoveAtExit(const std::string& path);
void RemoveSocketFile(const std::string& path);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
