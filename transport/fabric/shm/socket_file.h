// Sockets that are files of a directory: whom it may belong to, and that no
// file stays behind.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace shm {

// Only root, this process's user and `peer` can take a socket out of
// `directory` and put another in its place: it, each directory above it and
// each symbolic link on the way is owned by one of them, and what others may
// write has the sticky bit. In a user namespace where the root directory's
// owner has no number, all above that have none either count as root's; who is
// not root outside may be among them. FAILED_PRECONDITION names the remedy.
absl::Status CheckDirectory(const std::string& directory, uid_t peer);

// Removes sockets of Penstock's whose process is gone, as far as it may.
void RemoveStaleSockets(const std::string& directory);

// Has the file removed when the process exits, unless RemoveSocketFile() does
// so before. A forked child removes nothing of its parent's; a process that is
// killed leaves it to RemoveStaleSockets(). Thread-safe.
void RemoveAtExit(const std::string& path);
void RemoveSocketFile(const std::string& path);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SOCKET_FILE_H_
