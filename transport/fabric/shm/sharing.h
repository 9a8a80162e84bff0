// How one connection shares memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_

#include <memory>
#include <string>

#include "transport/fabric/shm/arena.h"

namespace penstock {
namespace fabric {
namespace shm {

// Agreed on by both sides in the set-up.
struct Sharing {
  // What the peer gets to read: its user's.
  std::shared_ptr<Arena> arena;
  // Neither side uses the other's memory in place. The peer's user could
  // change it while the application parses, and keep what it was lent.
  bool copies = false;
  // Why, for people; empty where they do not copy.
  std::string reason;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SHARING_H_
