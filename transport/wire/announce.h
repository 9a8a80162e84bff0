// The payload of kAnnounce: a message that waits to be read by the peer.

#ifndef PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
#define PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// Where the message can be read, over one path.
struct AnnouncedRegion {
  uint32_t path = 0;  // the path's epoch; 0: the lifeline
  uint64_t key = 0;
  uint64_t offset = 0;
};

struct Announce {
  uint64_t id = 0;                       // named by the kRelease that answers
  uint64_t length = 0;                   // of every region; at least 1
  std::vector<AnnouncedRegion> regions;  // best first, one or two
};

std::string EncodeAnnounce(const Announce& announce);

// INVALID_ARGUMENT where the bytes are not exactly an announcement.
absl::StatusOr<Announce> ParseAnnounce(absl::Span<const uint8_t> bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
