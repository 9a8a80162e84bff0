#include "transport/fabric/shm/options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {

absl::StatusOr<Sharing> Share(const Options& options, const PeerUser& peer) {
  if (peer.is_other && !options.other_users) return RefuseOtherUser(peer);
  Sharing sharing;
  sharing.copies_with_doorbells =
      options.copies_with_doorbells && !peer.is_other;
  if (peer.is_other) {
    sharing.copies = true;
    sharing.reason = absl::StrCat("another user (uid ", peer.uid, ")");
  } else if (options.always_copy) {
    sharing.copies = true;
    sharing.reason = "as configured";
  }
  // Lends no device memory while a device is stuck. Memory that waits to be
  // closed keeps the descriptors of its connection. Therefore no new connection
  // should depend on the device.
  if (!sharing.copies && !progress::IsBusyAsideForDevice()) {
    sharing.devices = options.devices;
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

uint32_t FeaturesOf(const Sharing& sharing) {
  return (sharing.devices == nullptr ? 0 : kOpensDevices) |
         (sharing.MayPassDoorbells() && RecognizesEventFds() ? kTakesDoorbell
                                                             : 0);
}

void Agree(bool peer_copies, const ControlPage& of_peer, Sharing* sharing) {
  if (peer_copies && !sharing->copies) {
    sharing->copies = true;
    sharing->reason = "the peer copies";
  }
  if (sharing->copies) sharing->devices = nullptr;
  sharing->peer_opens_devices =
      sharing->devices != nullptr && (of_peer.features & kOpensDevices) != 0;
  sharing->peer_takes_doorbell =
      sharing->MayPassDoorbells() && (of_peer.features & kTakesDoorbell) != 0;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
