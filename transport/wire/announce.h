// The payload of a kAnnounce frame: a message that the receiver may read.

#ifndef PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
#define PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// Where to read the message over one path.
struct AnnouncedRegion {
  uint32_t path = 0;  // the path's epoch; 0: the lifeline
  uint64_t key = 0;
  uint64_t offset = 0;
};

struct Announce {
  uint64_t id = 0;                       // the kRelease that answers names it
  uint64_t length = 0;                   // of the message; at least 1
  std::vector<AnnouncedRegion> regions;  // one or two, best first
};

std::string EncodeAnnounce(const Announce& announce);

// Returns INVALID_ARGUMENT if `bytes` are not exactly one announcement.
absl::StatusOr<Announce> ParseAnnounce(absl::Span<const uint8_t> bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
