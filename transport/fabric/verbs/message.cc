#include "transport/fabric/verbs/message.h"

#include "transport/base/byte_order.h"

namespace penstock {
namespace fabric {
namespace verbs {

void EncodeHeader(const MessageHeader& header, uint8_t* out) {
  out[0] = static_cast<uint8_t>(header.kind);
  out[1] = 0;
  base::StoreLittle<uint16_t>(header.credits, out + 2);
  base::StoreLittle<uint32_t>(0, out + 4);
}

absl::StatusOr<MessageHeader> ParseHeader(absl::Span<const uint8_t> message) {
  if (message.size() < kMessageHeaderBytes) {
    return absl::InvalidArgumentError("verbs: a message without its header");
  }
  const uint8_t kind = message[0];
  const bool is_message =
      kind == static_cast<uint8_t>(MessageHeader::Kind::kMessage);
  const bool is_credits =
      kind == static_cast<uint8_t>(MessageHeader::Kind::kCredits) &&
      message.size() == kMessageHeaderBytes;
  if ((!is_message && !is_credits) || message[1] != 0 ||
      base::LoadLittle<uint32_t>(message.data() + 4) != 0) {
    return absl::InvalidArgumentError("verbs: a malformed message header");
  }
  MessageHeader header;
  header.kind = static_cast<MessageHeader::Kind>(kind);
  header.credits = base::LoadLittle<uint16_t>(message.data() + 2);
  return header;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
