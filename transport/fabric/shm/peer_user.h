// The user that a peer runs as, according to the kernel.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_USER_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_USER_H_

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {
namespace fabric {
namespace shm {

struct PeerUser {
  uid_t uid = 0;
  // True if `uid` is not this process's effective uid.
  bool is_other = false;
};

// Returns the user at the other end of a connected UNIX socket (SO_PEERCRED).
// For a listening peer, this is its user when it began to listen. For a
// connecting peer, this is its user when it connected. Ignores the pid, which
// has no meaning across PID namespaces.
//
// Returns PERMISSION_DENIED if this process's user namespace does not map the
// peer's user. Such users all have the same number here, which may also be the
// number of this process's own user.
absl::StatusOr<PeerUser> IdentifyPeer(int socket);

// Returns the error for a peer of another user, if the connection promises
// privacy.
absl::Status RefuseOtherUser(const PeerUser& peer);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_USER_H_
