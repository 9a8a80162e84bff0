// Settings of the shared memory fabric.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "transport/fabric/shm/arena.h"

namespace penstock {
namespace fabric {
namespace shm {

struct Options {
  // This side's ring, a power of two of at least 128 KiB: sixteen of the
  // largest frames, more than is under way before the peer polls.
  uint32_t ring_bytes = 256 * 1024;
  // Where payloads for peers lie; null: Arena::Default().
  std::shared_ptr<Arena> arena;
  // For Connect(), for Listen() and for each connection that was accepted:
  // a thousand times what it takes on a busy machine.
  absl::Duration setup_timeout = absl::Seconds(2);
  // Accepted connections that have not shown a token yet.
  size_t max_half_open = 64;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
