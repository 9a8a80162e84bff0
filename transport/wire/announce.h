// The payload of a kAnnounce frame, which announces a message for the receiver
// to read.

#ifndef PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
#define PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// Limits the parts of a region, so that an announcement fits into one frame.
constexpr size_t kMaxParts = 512;

// Limits the bytes of a message to 1 TiB. No host sends a longer message, and
// sums of such lengths fit into 64 bits.
constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 40;

// Returns the maximum number of parts in a region, for a message of `length`
// bytes: one part, and two more for each 4 KiB. A piece of at least 4 KiB is a
// part of its own. Smaller pieces between two such pieces are copied into one
// part. The cap keeps the receiver's cost proportional to the bytes, which
// windows and budgets limit.
inline size_t MaxParts(uint8_t version, uint64_t length) {
  constexpr uint64_t kBytesOfTwoParts = 4 * 1024;
  if (version < 2) return 1;
  return static_cast<size_t>(
      std::min<uint64_t>(kMaxParts, 1 + 2 * (length / kBytesOfTwoParts)));
}

// A range of memory that holds some bytes of the message.
struct AnnouncedPart {
  uint64_t key = 0;
  uint64_t offset = 0;  // offset + length does not overflow
  uint64_t length = 0;  // at least 1
};

// A way to read the message, over one path.
struct AnnouncedRegion {
  uint32_t path = 0;  // the path's epoch; 0: the lifeline
  // The ranges that hold the message's bytes, in order.
  std::vector<AnnouncedPart> parts;
};

struct Announce {
  uint64_t id = 0;      // named by the kRelease that answers
  uint64_t length = 0;  // of the message; 1 to kMaxMessageBytes
  std::vector<AnnouncedRegion> regions;  // one or two, best first

  // Returns the number of parts of the region that has the most.
  size_t max_parts() const;
};

// Returns the encoded announcement. Requires at most MaxParts() parts in each
// region.
std::string EncodeAnnounce(const Announce& announce, uint8_t version);

// Parses an announcement. Returns INVALID_ARGUMENT if `bytes` are not exactly
// one announcement, if the parts of a region do not add up to the message, or
// if a number exceeds its bound.
absl::StatusOr<Announce> ParseAnnounce(absl::Span<const uint8_t> bytes,
                                       uint8_t version);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_ANNOUNCE_H_
