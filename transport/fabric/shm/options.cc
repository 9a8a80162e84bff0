#include "transport/fabric/shm/options.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace fabric {
namespace shm {

absl::StatusOr<Sharing> Share(const Options& options, const PeerUser& peer) {
  if (peer.is_other && !options.other_users) return RefuseOtherUser(peer);
  Sharing sharing;
  if (peer.is_other) {
    sharing.copies = true;
    sharing.reason = absl::StrCat("another user (uid ", peer.uid, ")");
  } else if (options.always_copy) {
    sharing.copies = true;
    sharing.reason = "as configured";
  }
  if (!peer.is_other && options.arena != nullptr) {
    sharing.arena = options.arena;
    return sharing;
  }
  absl::StatusOr<std::shared_ptr<Arena>> arena =
      ArenaFor(peer.uid, options.huge_pages, options.arena_bytes);
  if (!arena.ok()) return arena.status();
  sharing.arena = *std::move(arena);
  return sharing;
}

void Agree(bool peer_copies, Sharing* sharing) {
  if (!peer_copies || sharing->copies) return;
  sharing->copies = true;
  sharing->reason = "the peer copies";
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
