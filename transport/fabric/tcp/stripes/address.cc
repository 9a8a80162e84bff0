#include "transport/fabric/tcp/stripes/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

bool ParseV4(const std::string& host, uint16_t port, Address* address) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address->storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  address->length = sizeof *v4;
  return inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1;
}

// Parses "fe80::1%2" or "fe80::1%eth0": an address with an optional interface.
bool ParseV6(const std::string& host, uint16_t port, Address* address) {
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address->storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  address->length = sizeof *v6;
  const size_t percent = host.find('%');
  if (percent != std::string::npos) {
    const std::string scope = host.substr(percent + 1);
    uint32_t index = 0;
    if (!absl::SimpleAtoi(scope, &index)) {
      index = if_nametoindex(scope.c_str());
    }
    v6->sin6_scope_id = index;
  }
  return inet_pton(AF_INET6, host.substr(0, percent).c_str(), &v6->sin6_addr) ==
         1;
}

// Returns the IP address as one of IPv6. Maps an IPv4 address.
in6_addr HostOf(const Address& address) {
  in6_addr host = {};
  if (address.storage.ss_family == AF_INET6) {
    return reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
  }
  host.s6_addr[10] = host.s6_addr[11] = 0xff;
  memcpy(&host.s6_addr[12],
         &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr,
         sizeof(in_addr));
  return host;
}

bool IsIp(const Address& address) {
  return address.storage.ss_family == AF_INET ||
         address.storage.ss_family == AF_INET6;
}

}  // namespace

absl::StatusOr<Address> Address::Parse(absl::string_view text) {
  const std::string plain =
      absl::StrReplaceAll(text, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = plain;
  const bool is_v6 = absl::ConsumePrefix(&rest, "ipv6:[");
  const absl::string_view before_port = is_v6 ? "]:" : ":";
  if (is_v6 || absl::ConsumePrefix(&rest, "ipv4:")) {
    const size_t end = rest.rfind(before_port);
    uint32_t port = 0;
    Address address;
    if (end != absl::string_view::npos &&
        absl::SimpleAtoi(rest.substr(end + before_port.size()), &port) &&
        port <= UINT16_MAX) {
      const std::string host(rest.substr(0, end));
      const auto number = static_cast<uint16_t>(port);
      if (is_v6 ? ParseV6(host, number, &address)
                : ParseV4(host, number, &address)) {
        return address;
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no address of a TCP connection: ", text));
}

absl::StatusOr<Address> Address::OfPeer(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage),
                  &address.length) != 0) {
    return base::ErrnoStatus(errno, "getpeername");
  }
  return address;
}

bool Address::IsSameHost(const Address& other) const {
  if (!IsIp(*this) || !IsIp(other)) return false;
  const in6_addr mine = HostOf(*this), its = HostOf(other);
  return memcmp(&mine, &its, sizeof mine) == 0;
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
