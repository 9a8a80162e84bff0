// Settings of the shared memory fabric, and their effect on a peer.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/sharing.h"
#include "transport/fabric/shm/user_arenas.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

struct Options {
  // The full size of this side's ring, in bytes: a power of two from 128 KiB to
  // 16 MiB. The default has room for sixteen of the largest frames, more than
  // are usually in flight before the peer polls.
  uint32_t ring_bytes = 256 * 1024;
  // The arena of payloads for peers of this process's user. If null, the fabric
  // uses ArenaFor() of that user. Payloads for another user are always in
  // ArenaFor() of the other user.
  std::shared_ptr<Arena> arena;
  // The pages of each arena that ArenaFor() makes for this fabric.
  HugePages huge_pages = HugePages::kTransparent;
  // Limits the bytes of the arena of this process's user, like `bytes` of
  // ArenaFor(). The arena of another user gets a quarter. 0 means
  // Arena::DefaultBudget().
  uint64_t arena_bytes = 0;
  // True to connect to peers of other users, and to copy in both directions
  // then. Set to false if the connection promises privacy.
  bool other_users = true;
  // True to copy in both directions even if the peer runs as the same user.
  bool always_copy = false;
  // The access to this process's devices. The two sides lend each other device
  // memory if both set this field and neither side copies. A peer that opens an
  // allocation can read and write all of it. Null for connections whose
  // receivers read all bytes with the CPU. Must live as long as the process.
  memory::DeviceAccess* devices = nullptr;
  // Passes doorbells to a process of the same user even if the sides copy, if
  // the peer has this option, too. For owners without a doorbell of a lifeline.
  bool copies_with_doorbells = false;
  // The directory of the socket files of this process and its peers. Use for
  // processes that share a directory but no network namespace. Empty means
  // abstract sockets, without files.
  std::string directory;
  // Limits the time of each Connect(), each Listen(), and each accepted
  // connection that has not shown a token. The default is a thousand times the
  // usual duration on a busy machine.
  absl::Duration setup_timeout = absl::Seconds(2);
  // Limits the accepted connections that have not shown a token yet. The oldest
  // of them makes room for a new one.
  size_t max_half_open = 64;
};

// Returns how this side would share memory with `peer`. Returns
// PERMISSION_DENIED if the options forbid the peer's user, and
// RESOURCE_EXHAUSTED if no arena is left for another user.
absl::StatusOr<Sharing> Share(const Options& options, const PeerUser& peer);
// Returns the bits that tell the peer, on this side's control page, how this
// side shares memory.
uint32_t FeaturesOf(const Sharing& sharing);
// Updates `sharing` after the peer's half of the set-up has arrived. If either
// side copies, both copy, and neither lends device memory.
void Agree(bool peer_copies, const ControlPage& of_peer, Sharing* sharing);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_OPTIONS_H_
