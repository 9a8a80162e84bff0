// How the two sides of a connection share memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_

#include <memory>
#include <string>

#include "transport/fabric/shm/arena.h"

namespace penstock {
namespace memory {
class DeviceAccess;
}  // namespace memory

namespace fabric {
namespace shm {

// Agreed on in the set-up.
struct Sharing {
  // Where this side lends from: the arena for the peer's user.
  std::shared_ptr<Arena> arena;
  // True if each side copies what the other lends, and uses nothing in place. A
  // peer of another user could change it while the application parses, and
  // could keep what it was lent.
  bool copies = false;
  // Why they copy, for people. Empty if they do not.
  std::string reason;
  // Opens what the peer lends of devices' memory; null: this side opens none,
  // and lends none.
  memory::DeviceAccess* devices = nullptr;
  // Whether the peer opens what this side lends of it.
  bool peer_opens_devices = false;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
