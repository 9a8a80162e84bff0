// Which user a peer runs as, as the kernel has it.

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
  // Not this process's effective uid.
  bool is_other = false;
};

// The user at the other end of a connected UNIX socket (SO_PEERCRED): of one
// that accepted as it was when it began to listen, of one that connected as it
// was when it did. Its pid is not asked for: in another PID namespace it means
// nothing.
//
// PERMISSION_DENIED where this process's user namespace has no name for the
// peer's user: all such users look alike there, this process's own perhaps
// among them.
absl::StatusOr<PeerUser> IdentifyPeer(int socket);

// For a peer of another user on a connection whose security promises that
// nobody else reads along.
absl::Status RefuseOtherUser(const PeerUser& peer);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_USER_H_
