#include "transport/fabric/verbs/formats/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

const sockaddr_in& AsV4(const sockaddr& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& AsV6(const sockaddr& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

bool IsLinkLocal(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&AsV6(address).sin6_addr);
}

}  // namespace

absl::StatusOr<Address> Address::From(const sockaddr& address) {
  Address result;
  if (address.sa_family == AF_INET) {
    std::memcpy(&result.storage_, &address, sizeof(sockaddr_in));
  } else if (address.sa_family == AF_INET6) {
    std::memcpy(&result.storage_, &address, sizeof(sockaddr_in6));
  } else {
    return absl::InvalidArgumentError("neither an IPv4 nor an IPv6 address");
  }
  return result;
}

absl::StatusOr<Address> Address::Parse(absl::string_view text, uint16_t port) {
  if (absl::StrContains(text, '\0')) {
    return absl::InvalidArgumentError("malformed address");
  }
  const std::string name(text);
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, name.c_str(), &v4.sin_addr) == 1) {
    return From(reinterpret_cast<const sockaddr&>(v4));
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, name.c_str(), &v6.sin6_addr) == 1) {
    return From(reinterpret_cast<const sockaddr&>(v6));
  }
  return absl::InvalidArgumentError("malformed address");
}

uint16_t Address::port() const {
  return ntohs(is_v6() ? AsV6(value()).sin6_port : AsV4(value()).sin_port);
}

void Address::set_port(uint16_t port) {
  if (is_v6()) {
    reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
  }
}

std::string Address::AsGid() const {
  if (is_v6()) {
    return std::string(reinterpret_cast<const char*>(&AsV6(value()).sin6_addr),
                       16);
  }
  std::string gid(16, '\0');
  gid[10] = gid[11] = '\xff';
  std::memcpy(&gid[12], &AsV4(value()).sin_addr, 4);
  return gid;
}

std::string Address::Text() const { return AddressText(value()); }

std::string AddressText(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &AsV4(address).sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &AsV6(address).sin6_addr, text, sizeof text);
  }
  return text;
}

absl::StatusOr<std::vector<Address>> InterfaceAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return base::ErrnoStatus(errno, "getifaddrs");
  std::vector<Address> addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    // Skips link-local addresses, which mean nothing without an interface: the
    // peer's interfaces are different.
    if (IsLinkLocal(*each->ifa_addr)) continue;
    absl::StatusOr<Address> address = Address::From(*each->ifa_addr);
    if (address.ok()) addresses.push_back(*address);
  }
  freeifaddrs(list);
  return addresses;
}

std::string MakeOffer(const std::vector<Address>& addresses) {
  std::string offer;
  for (const Address& address : addresses) {
    absl::StrAppend(&offer, address.Text(), " ", address.port(), "\n");
  }
  return offer;
}

absl::StatusOr<std::vector<Address>> ParseOffer(absl::string_view offer) {
  std::vector<Address> addresses;
  for (absl::string_view line :
       absl::StrSplit(offer, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    uint32_t port = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &port) || port == 0 ||
        port > UINT16_MAX || addresses.size() == kMaxOffered) {
      return absl::InvalidArgumentError("malformed offer of RDMA addresses");
    }
    absl::StatusOr<Address> address =
        Address::Parse(words[0], static_cast<uint16_t>(port));
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  if (addresses.empty()) {
    return absl::InvalidArgumentError("an offer without RDMA addresses");
  }
  return addresses;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
