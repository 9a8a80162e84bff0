#include "transport/base/listen_address.h"

#include <arpa/inet.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"

namespace penstock {
namespace base {
namespace {

constexpr size_t kMaxTextBytes = 200;
constexpr int kMaxPort = 65535;

bool IsName(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

// Returns true for an IPv6 address, with or without a zone after a %.
bool IsIpv6(absl::string_view text) {
  const size_t zone = text.find('%');
  if (zone != text.npos && !IsName(text.substr(zone + 1))) return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(),
                   &address) == 1;
}

// Parses a port. SimpleAtoi() would also accept signs and blanks.
std::optional<int> ParsePort(absl::string_view text) {
  int port = 0;
  if (text.empty() || !absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &port) || port > kMaxPort) {
    return std::nullopt;
  }
  return port;
}

}  // namespace

absl::StatusOr<ListenAddress> ListenAddress::Parse(absl::string_view text) {
  const auto wrong = [text](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", Printable(text, kMaxTextBytes), "\" ", what,
        ": use an address or HOST:PORT, such as 0.0.0.0, 127.0.0.1:50051 or "
        "[::1]:50051"));
  };
  ListenAddress address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "[")) {
    const size_t end = rest.find(']');
    if (end == rest.npos) return wrong("has no closing bracket");
    address.host = std::string(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!IsIpv6(address.host)) return wrong("has no IPv6 address in brackets");
  } else {
    // Finds the end of the host. In an IPv6 address without brackets, no colon
    // precedes a port.
    const size_t end =
        absl::c_count(text, ':') == 1 ? text.find(':') : text.npos;
    address.host = std::string(text.substr(0, end));
    rest.remove_prefix(address.host.size());
    if (!IsName(address.host) && !IsIpv6(address.host)) {
      return wrong(address.host.empty() ? "has no address" : "is no address");
    }
  }
  if (rest.empty()) return address;
  address.port = rest.front() == ':' ? ParsePort(rest.substr(1)) : std::nullopt;
  if (!address.port.has_value()) {
    return wrong("has a port that is not 0 to 65535");
  }
  return address;
}

std::string ListenAddress::WithPort(int with) const {
  return host.find(':') == std::string::npos
             ? absl::StrCat(host, ":", with)
             : absl::StrCat("[", host, "]:", with);
}

}  // namespace base
}  // namespace penstock
