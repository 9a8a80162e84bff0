#include "transport/settings/http_address.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMaxHostBytes = 255;

bool IsHost(absl::string_view host) {
  if (host.empty() || host.size() > kMaxHostBytes) return false;
  if (host.front() == '[') {
    return host.size() > 2 && host.back() == ']' &&
           absl::c_all_of(host.substr(1, host.size() - 2), [](char c) {
             return absl::ascii_isxdigit(c) || c == ':' || c == '.';
           });
  }
  return absl::c_all_of(host, [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-';
  });
}

}  // namespace

absl::optional<HttpAddress> HttpAddress::Parse(absl::string_view text) {
  HttpAddress address;
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos) {
    if (!IsHost(text.substr(0, colon))) return absl::nullopt;
    address.host = std::string(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  // Rejects signs and blanks, which SimpleAtoi() would accept.
  if (text.empty() || !absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &address.port) || address.port > 65535) {
    return absl::nullopt;
  }
  return address;
}

std::string HttpAddress::ToString() const {
  return absl::StrCat(host, ":", port);
}

}  // namespace penstock
