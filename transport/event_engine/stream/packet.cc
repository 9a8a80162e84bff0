#include "transport/event_engine/stream/packet.h"

#include <utility>

#include "absl/status/status.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace event_engine {
namespace {

// "PSTKMOVE", read as a little-endian number.
constexpr uint64_t kMark = 0x45564f4d4b545350;
// Limits an offset. 2^62 bytes take years at any speed, and the sum of an
// offset and a length cannot overflow.
constexpr uint64_t kMaxOffset = uint64_t{1} << 62;

absl::Status Malformed() {
  return absl::InvalidArgumentError("the peer's packet is malformed");
}

absl::StatusOr<fabric::RemoteRegion> ReadRegion(size_t parts,
                                                wire::Reader* reader) {
  fabric::RemoteRegion region;
  uint64_t total = 0;
  for (size_t i = 0; i < parts; ++i) {
    fabric::RemotePart part;
    part.key = reader->Number<uint64_t>();
    part.offset = reader->Number<uint64_t>();
    part.length = reader->Number<uint64_t>();
    if (part.length == 0 || part.length > kMaxOffset - total) {
      return Malformed();
    }
    total += part.length;
    region.push_back(part);
  }
  if (!reader->Finished()) return Malformed();
  return region;
}

// Reads the fields of the packet after its head.
absl::Status ReadRest(size_t parts, absl::Span<const uint8_t> rest,
                      Packet* packet) {
  switch (packet->kind) {
    case Packet::Kind::kBegin:
    case Packet::Kind::kAck:
      return parts == 0 && rest.empty() ? absl::OkStatus() : Malformed();
    case Packet::Kind::kBytes:
      if (parts != 0 || rest.empty()) return Malformed();
      packet->bytes = rest;
      return absl::OkStatus();
    case Packet::Kind::kRegion:
      break;
  }
  if (parts == 0 || parts > kMaxParts) return Malformed();
  wire::Reader reader(rest);
  absl::StatusOr<fabric::RemoteRegion> region = ReadRegion(parts, &reader);
  if (!region.ok()) return region.status();
  packet->region = *std::move(region);
  return absl::OkStatus();
}

}  // namespace

std::string EncodeHead(const Packet& packet) {
  std::string head;
  wire::AppendNumber(static_cast<uint8_t>(packet.kind), &head);
  wire::AppendNumber(static_cast<uint8_t>(packet.region.size()), &head);
  wire::AppendNumber(kStreamVersion, &head);
  wire::AppendNumber(uint32_t{0}, &head);
  wire::AppendNumber(packet.offset, &head);
  wire::AppendNumber(packet.acknowledged, &head);
  for (const fabric::RemotePart& part : packet.region) {
    wire::AppendNumber(part.key, &head);
    wire::AppendNumber(part.offset, &head);
    wire::AppendNumber(part.length, &head);
  }
  return head;
}

absl::StatusOr<Packet> DecodePacket(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kHeadBytes) return Malformed();
  wire::Reader reader(bytes.first(kHeadBytes));
  const uint8_t kind = reader.Number<uint8_t>();
  const uint8_t parts = reader.Number<uint8_t>();
  const uint16_t version = reader.Number<uint16_t>();
  const uint32_t zero = reader.Number<uint32_t>();
  Packet packet;
  packet.offset = reader.Number<uint64_t>();
  packet.acknowledged = reader.Number<uint64_t>();
  if (version != kStreamVersion) {
    return absl::FailedPreconditionError(
        "the peer's stream is of a version "
        "that this release does not know");
  }
  if (kind < static_cast<uint8_t>(Packet::Kind::kBegin) ||
      kind > static_cast<uint8_t>(Packet::Kind::kAck) || zero != 0 ||
      packet.offset > kMaxOffset || packet.acknowledged > kMaxOffset) {
    return Malformed();
  }
  packet.kind = static_cast<Packet::Kind>(kind);
  absl::Status rest = ReadRest(parts, bytes.subspan(kHeadBytes), &packet);
  if (!rest.ok()) return rest;
  return packet;
}

uint64_t BytesOf(const fabric::RemoteRegion& region) {
  uint64_t total = 0;
  for (const fabric::RemotePart& part : region) total += part.length;
  return total;
}

std::string EncodeMark(uint64_t offset) {
  std::string mark;
  wire::AppendNumber(kMark, &mark);
  wire::AppendNumber(offset, &mark);
  return mark;
}

absl::StatusOr<uint64_t> DecodeMark(absl::Span<const uint8_t> bytes) {
  wire::Reader reader(bytes);
  const uint64_t mark = reader.Number<uint64_t>();
  const uint64_t offset = reader.Number<uint64_t>();
  if (!reader.Finished() || mark != kMark || offset > kMaxOffset) {
    return absl::InvalidArgumentError(
        "no mark follows where the peer's stream "
        "left TCP");
  }
  return offset;
}

}  // namespace event_engine
}  // namespace penstock
