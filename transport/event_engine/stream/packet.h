// The formats of a movable stream: packets on a path, and a mark on TCP.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_PACKET_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace event_engine {

// A packet is a head of kHeadBytes, little-endian: u8 kind, u8 number of parts,
// u16 version, u32 zero, u64 offset, u64 acknowledged. After the head come the
// stream's bytes (kBytes), or parts of u64 key, u64 offset, u64 length
// (kRegion).
constexpr size_t kHeadBytes = 24;
constexpr size_t kPartBytes = 24;
constexpr size_t kMaxParts = 16;
constexpr uint16_t kStreamVersion = 1;

struct Packet {
  enum class Kind : uint8_t {
    kBegin = 1,   // the direction moves to the path at `offset`
    kBytes = 2,   // the stream's bytes from `offset` on
    kRegion = 3,  // the stream's bytes from `offset` on, as an exposed region
    kAck = 4,     // only acknowledges
  };
  Kind kind = Kind::kAck;
  uint64_t offset = 0;
  // The number of bytes of the other direction that the sender has consumed.
  uint64_t acknowledged = 0;
  absl::Span<const uint8_t> bytes;  // kBytes; part of the packet
  fabric::RemoteRegion region;      // kRegion
};

// Returns the bytes of `packet`, without `packet.bytes`. Requires at most
// kMaxParts parts.
std::string EncodeHead(const Packet& packet);
// Returns INVALID_ARGUMENT unless `bytes` are exactly one packet, whose bytes
// and parts are not empty and do not overflow an offset. Returns
// FAILED_PRECONDITION for another version.
absl::StatusOr<Packet> DecodePacket(absl::Span<const uint8_t> bytes);
// Returns the number of bytes in a region. The sum cannot overflow, because
// DecodePacket() has checked it.
uint64_t BytesOf(const fabric::RemoteRegion& region);

// A mark is the first data on TCP after a direction has left TCP and returned.
// The mark consists of 8 fixed bytes, and the offset of the next byte.
constexpr size_t kMarkBytes = 16;
constexpr uint8_t kMarkFirstByte = 'P';  // no type of a TLS record
std::string EncodeMark(uint64_t offset);
// Returns INVALID_ARGUMENT unless `bytes` are a mark.
absl::StatusOr<uint64_t> DecodeMark(absl::Span<const uint8_t> bytes);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_PACKET_H_
