// Settings of the shared memory fabric.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/domains.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/sharing.h"

namespace penstock {
namespace fabric {
namespace shm {

struct Options {
  // This side's ring when it has grown, a power of two of at least 128 KiB:
  // sixteen of the largest frames, more than is under way before the peer
  // polls.
  uint32_t ring_bytes = 256 * 1024;
  // Where payloads for peers of this process's user lie; null: ArenaFor(it).
  // Those of others always have ArenaFor(them).
  std::shared_ptr<Arena> arena;
  // Of each arena that ArenaFor() makes for the first connection to its user.
  HugePages huge_pages = HugePages::kTransparent;
  // Peers of other users get what is in place for them, and are read by copy.
  // Else they are refused: their memory is nobody's whose security promises
  // privacy.
  bool other_users = true;
  // Peers of this process's own user are read by copy too.
  bool always_copy = false;
  // Where the listening socket is, as a file, and where those of peers are
  // looked for, for processes that share a directory but no network namespace;
  // empty: abstract sockets, no file.
  std::string directory;
  // For Connect(), for Listen() and for each connection that was accepted:
  // a thousand times what it takes on a busy machine.
  absl::Duration setup_timeout = absl::Seconds(2);
  // Accepted connections that have not shown a token yet.
  size_t max_half_open = 64;
};

// What is shared with `peer`, as far as this side decides. PERMISSION_DENIED,
// RESOURCE_EXHAUSTED: nothing.
absl::StatusOr<Sharing> Share(const Options& options, const PeerUser& peer);
// The peer said in the set-up whether it copies.
void Agree(bool peer_copies, Sharing* sharing);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
