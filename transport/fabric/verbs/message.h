// The header of each message on a queue pair: 8 bytes, little-endian.
//
//   0  u8   kind: 1 a message follows, 2 nothing follows
//   1  u8   0
//   2  u16  credits: receives that the sender has posted since its last header
//   4  u32  0

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_MESSAGE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_MESSAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr size_t kMessageHeaderBytes = 8;

struct MessageHeader {
  enum class Kind : uint8_t { kMessage = 1, kCredits = 2 };
  Kind kind = Kind::kMessage;
  uint16_t credits = 0;
};

// Writes kMessageHeaderBytes.
void EncodeHeader(const MessageHeader& header, uint8_t* out);
// Parses the header of `message`. Returns INVALID_ARGUMENT for anything else,
// and for kCredits with bytes behind it.
absl::StatusOr<MessageHeader> ParseHeader(absl::Span<const uint8_t> message);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_MESSAGE_H_
