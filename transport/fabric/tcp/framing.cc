#include "transport/fabric/tcp/framing.h"

#include "absl/strings/str_cat.h"
#include "transport/base/byte_order.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

bool LengthFits(uint32_t length, UnitType type) {
  switch (type) {
    case UnitType::kPacket:
      return length <= kMaxPacketBytes;
    case UnitType::kRead:
      return length == kReadBodyBytes;
    case UnitType::kReadData:
      return length > 0 && length <= kMaxReadBytes;
    case UnitType::kPush:
      return length > 0 && length <= kChunkBytes;
    case UnitType::kDoorbell:
    case UnitType::kReadError:
    case UnitType::kPushVoid:
      return length == 0;
  }
  return false;  // no such type
}

}  // namespace

void AppendUnitHeader(const UnitHeader& header, std::string* out) {
  uint8_t bytes[kUnitHeaderBytes] = {};
  base::StoreLittle<uint32_t>(header.length, bytes);
  bytes[4] = static_cast<uint8_t>(header.type);
  base::StoreLittle<uint64_t>(header.cookie, bytes + 8);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

absl::StatusOr<UnitHeader> ParseUnitHeader(const uint8_t* in) {
  UnitHeader header;
  header.length = base::LoadLittle<uint32_t>(in);
  header.type = static_cast<UnitType>(in[4]);
  header.cookie = base::LoadLittle<uint64_t>(in + 8);
  if ((in[5] | in[6] | in[7]) != 0 || !LengthFits(header.length, header.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "malformed unit on tcp: type ", in[4], ", length ", header.length));
  }
  return header;
}

void AppendReadRequest(const ReadRequest& request, std::string* out) {
  uint8_t bytes[kReadBodyBytes];
  base::StoreLittle<uint64_t>(request.key, bytes);
  base::StoreLittle<uint64_t>(request.offset, bytes + 8);
  base::StoreLittle<uint32_t>(request.length, bytes + 16);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

ReadRequest ParseReadRequest(const uint8_t* in) {
  ReadRequest request;
  request.key = base::LoadLittle<uint64_t>(in);
  request.offset = base::LoadLittle<uint64_t>(in + 8);
  request.length = base::LoadLittle<uint32_t>(in + 16);
  return request;
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
