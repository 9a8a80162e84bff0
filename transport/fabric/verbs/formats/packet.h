// The header of each packet on a queue pair: 8 bytes, little-endian.
//
//   0  u8   kind: 1 frames follow, 2 nothing follows
//   1  u8   0
//   2  u16  credits: receives that the sender has posted since its last header
//   4  u32  0

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PACKET_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PACKET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr size_t kPacketHeaderBytes = 8;

struct PacketHeader {
  enum class Kind : uint8_t { kPacket = 1, kCredits = 2 };
  Kind kind = Kind::kPacket;
  uint16_t credits = 0;
};

// Writes kPacketHeaderBytes.
void EncodeHeader(const PacketHeader& header, uint8_t* out);
// Parses the header of `packet`. Returns INVALID_ARGUMENT for anything else,
// and for kCredits followed by bytes.
absl::StatusOr<PacketHeader> ParseHeader(absl::Span<const uint8_t> packet);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PACKET_H_
