#include "collectives/net/message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "transport/base/byte_order.h"

namespace penstock::collectives {
namespace {

constexpr uint32_t kMagic = 0x4E435350;  // "PSCN"
constexpr size_t kHeaderBytes = 56;
constexpr size_t kMaxTextBytes = 1024;

}  // namespace

std::string Encode(const Message& message) {
  std::string bytes(kHeaderBytes, '\0');
  auto* const out = reinterpret_cast<uint8_t*>(&bytes[0]);
  base::StoreLittle(kMagic, out);
  base::StoreLittle(Message::kVersion, out + 4);
  base::StoreLittle(static_cast<uint16_t>(message.kind), out + 6);
  base::StoreLittle(message.from, out + 8);
  base::StoreLittle(message.key.part, out + 12);
  base::StoreLittle(message.key.channel, out + 16);
  base::StoreLittle(message.key.number, out + 24);
  base::StoreLittle(message.words[0], out + 32);
  base::StoreLittle(message.words[1], out + 40);
  base::StoreLittle(static_cast<uint32_t>(message.fault), out + 48);
  base::StoreLittle(message.culprit, out + 52);
  return bytes + message.text.substr(0, kMaxTextBytes);
}

absl::StatusOr<Message> DecodeMessage(absl::string_view bytes) {
  const auto* const in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (bytes.size() < kHeaderBytes ||
      bytes.size() > kHeaderBytes + kMaxTextBytes ||
      base::LoadLittle<uint32_t>(in) != kMagic) {
    return absl::InvalidArgumentError("malformed message of a rank");
  }
  const auto version = base::LoadLittle<uint16_t>(in + 4);
  if (version != Message::kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("a rank speaks version ", version, " of collectives, not ",
                     Message::kVersion));
  }
  const auto kind = base::LoadLittle<uint16_t>(in + 6);
  const auto fault = base::LoadLittle<uint32_t>(in + 48);
  if (kind < 1 || kind > 5 || fault > static_cast<uint32_t>(Fault::kFailed)) {
    return absl::InvalidArgumentError("malformed message of a rank");
  }
  Message message;
  message.kind = static_cast<Message::Kind>(kind);
  message.from = base::LoadLittle<uint32_t>(in + 8);
  message.key.part = base::LoadLittle<uint32_t>(in + 12);
  message.key.channel = base::LoadLittle<uint64_t>(in + 16);
  message.key.number = base::LoadLittle<uint64_t>(in + 24);
  message.words = {base::LoadLittle<uint64_t>(in + 32),
                   base::LoadLittle<uint64_t>(in + 40)};
  message.fault = static_cast<Fault>(fault);
  message.culprit = base::LoadLittle<uint32_t>(in + 52);
  message.text = std::string(bytes.substr(kHeaderBytes));
  return message;
}

}  // namespace penstock::collectives
