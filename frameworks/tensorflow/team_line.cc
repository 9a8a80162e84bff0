#include "frameworks/tensorflow/team_line.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace tensorflow {
namespace {

constexpr size_t kKeyAt = 2;

}  // namespace

TeamLineBytes Encode(const TeamLine& line) {
  TeamLineBytes bytes = {};
  bytes[0] = static_cast<uint8_t>(line.kind);
  bytes[1] = static_cast<uint8_t>(line.key.size());
  std::memcpy(bytes.data() + kKeyAt, line.key.data(), line.key.size());
  return bytes;
}

absl::StatusOr<TeamLine> DecodeTeamLine(const TeamLineBytes& bytes) {
  if (bytes[0] < static_cast<uint8_t>(TeamLine::Kind::kCalled) ||
      bytes[0] > static_cast<uint8_t>(TeamLine::Kind::kReduce) ||
      bytes[1] > TeamLine::kMaxKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rank sends a malformed line: kind ", bytes[0],
                     ", a key of ", bytes[1], " bytes"));
  }
  TeamLine line;
  line.kind = static_cast<TeamLine::Kind>(bytes[0]);
  line.key.assign(reinterpret_cast<const char*>(bytes.data()) + kKeyAt,
                  bytes[1]);
  return line;
}

}  // namespace tensorflow
}  // namespace penstock
