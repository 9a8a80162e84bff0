#include "transport/base/bytes_text.h"

#include "absl/strings/str_format.h"

namespace penstock {
namespace base {

std::string BytesText(uint64_t bytes) {
  for (const ByteUnit& unit : kByteUnits) {
    if (bytes < unit.bytes) continue;
    const double count =
        static_cast<double>(bytes) / static_cast<double>(unit.bytes);
    const bool is_whole = bytes % unit.bytes == 0 || count >= 100;
    return absl::StrFormat("%.*f %s", is_whole ? 0 : 1, count, unit.name);
  }
  return "0 B";
}

}  // namespace base
}  // namespace penstock
