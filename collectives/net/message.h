// The messages between ranks across hosts. docs/collectives.md describes them.

#ifndef PENSTOCK_COLLECTIVES_NET_MESSAGE_H_
#define PENSTOCK_COLLECTIVES_NET_MESSAGE_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/call.h"
#include "collectives/fault.h"

namespace penstock::collectives {

// Identifies a part of a transfer between two ranks.
struct Key {
  // 0 for collective operations. Otherwise ChannelOf() the tag.
  uint64_t channel = 0;
  // On channel 0, the number of the collective operation. On the channel of a
  // tag, the number of the send with that tag. The first number is 1.
  uint64_t number = 0;
  uint32_t part = 0;

  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.channel, a.number, a.part) <
           std::tie(b.channel, b.number, b.part);
  }
};

// Limits the bytes of a part's elements. A rank refuses larger parts. Each part
// costs a call, but is reduced only when all of it has arrived.
inline constexpr int64_t kMaxPartBytes = 1024 * 1024;

inline uint64_t ChannelOf(uint32_t tag) { return uint64_t{1} << 32 | tag; }

// The metadata of a call of transport/rpc. Format, little-endian: u32 "PSCN",
// u16 version, u16 kind, u32 sender, u32 part, u64 channel, u64 number, two u64
// words of the call, u32 fault, u32 culprit, and the text.
struct Message {
  static constexpr uint16_t kVersion = 2;
  enum class Kind : uint16_t {
    // Introduces a rank. `text` is the digest of all addresses.
    kHello = 1,
    // Has elements as its payload.
    kPart = 2,
    // Says which operation the sender has called.
    kNotice = 3,
    // Says why the group of the sender has ended. `text` is for people.
    kFailure = 4,
    // Says that the sender leaves after operation `key.number`.
    kLeave = 5,
  };
  Kind kind = Kind::kHello;
  uint32_t from = 0;
  Key key;
  CallWords words = {};
  Fault fault = Fault::kNone;
  uint32_t culprit = 0;
  std::string text;
};

std::string Encode(const Message& message);
// Returns INVALID_ARGUMENT unless `bytes` are exactly one message, and
// FAILED_PRECONDITION for a message of another version.
absl::StatusOr<Message> DecodeMessage(absl::string_view bytes);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_MESSAGE_H_
