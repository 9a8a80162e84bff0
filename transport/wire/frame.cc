#include "transport/wire/frame.h"

#include "absl/strings/str_cat.h"
#include "transport/base/byte_order.h"

namespace penstock {
namespace wire {
namespace {

bool IsKnown(uint8_t type) {
  return (type >= static_cast<uint8_t>(FrameType::kHello) &&
          type <= static_cast<uint8_t>(FrameType::kPathOffered)) ||
         (type >= static_cast<uint8_t>(FrameType::kHeaders) &&
          type <= static_cast<uint8_t>(FrameType::kEntry));
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed frame: ", what));
}

}  // namespace

bool IsSequenced(FrameType type) { return type >= FrameType::kHeaders; }

void AppendFrame(const FrameHeader& header, absl::string_view payload,
                 std::string* out) {
  uint8_t bytes[kFrameHeaderBytes];
  base::StoreLittle<uint32_t>(header.length, bytes);
  bytes[4] = static_cast<uint8_t>(header.type);
  bytes[5] = header.flags;
  base::StoreLittle<uint16_t>(0, bytes + 6);
  base::StoreLittle<uint32_t>(header.stream, bytes + 8);
  base::StoreLittle<uint32_t>(header.aux, bytes + 12);
  base::StoreLittle<uint64_t>(header.sequence, bytes + 16);
  base::StoreLittle<uint64_t>(header.ack, bytes + 24);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  out->append(payload.data(), payload.size());
}

absl::StatusOr<Frame> TakeFrame(absl::Span<const uint8_t>* packet) {
  if (packet->size() < kFrameHeaderBytes) return Malformed("header cut short");
  const uint8_t* in = packet->data();
  Frame frame;
  FrameHeader& header = frame.header;
  header.length = base::LoadLittle<uint32_t>(in);
  if (!IsKnown(in[4])) return Malformed(absl::StrCat("unknown type ", in[4]));
  header.type = static_cast<FrameType>(in[4]);
  header.flags = in[5];
  if ((header.flags & ~kKnownFlags) != 0 ||
      base::LoadLittle<uint16_t>(in + 6) != 0) {
    return Malformed(absl::StrCat("unknown flag ", header.flags));
  }
  header.stream = base::LoadLittle<uint32_t>(in + 8);
  header.aux = base::LoadLittle<uint32_t>(in + 12);
  header.sequence = base::LoadLittle<uint64_t>(in + 16);
  header.ack = base::LoadLittle<uint64_t>(in + 24);
  if (IsSequenced(header.type) != (header.sequence != 0)) {
    return Malformed("sequence number does not fit the type");
  }
  if (header.length > kMaxFramePayload ||
      header.length > packet->size() - kFrameHeaderBytes) {
    return Malformed(absl::StrCat("length ", header.length));
  }
  frame.payload = packet->subspan(kFrameHeaderBytes, header.length);
  packet->remove_prefix(kFrameHeaderBytes + header.length);
  return frame;
}

}  // namespace wire
}  // namespace penstock
