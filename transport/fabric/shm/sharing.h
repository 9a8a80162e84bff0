// The way in which the two sides of a connection share memory.

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

// The result of the set-up's negotiation about memory.
struct Sharing {
  // The arena from which this side lends: the arena for the peer's user.
  std::shared_ptr<Arena> arena;
  // True if each side copies the bytes that the other side lends. Without
  // copies, a peer of another user could change memory while the application
  // parses it, and could keep lent memory.
  bool copies = false;
  // True if the sides pass each other doorbells even if they copy.
  bool copies_with_doorbells = false;
  // The reason for copying, for people. Empty if the sides do not copy.
  std::string reason;
  // The access by which this side opens device memory that the peer lends. If
  // null, this side opens and lends no device memory.
  memory::DeviceAccess* devices = nullptr;
  // True if the peer opens devices' memory that this side lends.
  bool peer_opens_devices = false;
  // True if the peer accepts a doorbell. This side then passes one.
  bool peer_takes_doorbell = false;

  bool MayPassDoorbells() const { return !copies || copies_with_doorbells; }
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
