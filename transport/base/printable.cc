#include "transport/base/printable.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace penstock {
namespace base {
namespace {

constexpr char kMore[] = "...";
constexpr size_t kMoreBytes = sizeof kMore - 1;

void AppendHex(unsigned char byte, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  out->append("\\x");
  out->push_back(kDigits[byte >> 4]);
  out->push_back(kDigits[byte & 15]);
}

}  // namespace

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string out;
  size_t fitting = 0;  // the longest part of `out` with room for the dots
  for (const char c : text) {
    if (out.size() + kMoreBytes <= max_bytes) fitting = out.size();
    if (absl::ascii_isprint(c)) {
      out.push_back(c);
    } else {
      AppendHex(static_cast<unsigned char>(c), &out);
    }
    if (out.size() <= max_bytes) continue;
    out.resize(fitting);
    out.append(kMore, std::min(kMoreBytes, max_bytes));
    return out;
  }
  return out;
}

}  // namespace base
}  // namespace penstock
