#include "transport/fabric/verbs/formats/packet.h"

#include "transport/base/byte_order.h"

namespace penstock {
namespace fabric {
namespace verbs {

void EncodeHeader(const PacketHeader& header, uint8_t* out) {
  out[0] = static_cast<uint8_t>(header.kind);
  out[1] = 0;
  base::StoreLittle<uint16_t>(header.credits, out + 2);
  base::StoreLittle<uint32_t>(0, out + 4);
}

absl::StatusOr<PacketHeader> ParseHeader(absl::Span<const uint8_t> packet) {
  if (packet.size() < kPacketHeaderBytes) {
    return absl::InvalidArgumentError("verbs: a packet without its header");
  }
  const uint8_t kind = packet[0];
  const bool is_packet =
      kind == static_cast<uint8_t>(PacketHeader::Kind::kPacket);
  const bool is_credits =
      kind == static_cast<uint8_t>(PacketHeader::Kind::kCredits) &&
      packet.size() == kPacketHeaderBytes;
  if ((!is_packet && !is_credits) || packet[1] != 0 ||
      base::LoadLittle<uint32_t>(packet.data() + 4) != 0) {
    return absl::InvalidArgumentError("verbs: a malformed packet header");
  }
  PacketHeader header;
  header.kind = static_cast<PacketHeader::Kind>(kind);
  header.credits = base::LoadLittle<uint16_t>(packet.data() + 2);
  return header;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
