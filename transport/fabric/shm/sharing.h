// How the two sides of a connection share memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_

#include <memory>
#include <string>

#include "transport/fabric/shm/arena.h"

namespace penstock {
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
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
