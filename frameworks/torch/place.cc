#include "frameworks/torch/place.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "collectives/net/address.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace pytorch {
namespace {

// The first line of a place's text. Changes with the layout.
constexpr char kLayout[] = "place 2";

// Returns the numeric form of an address, or nothing for other families.
std::string Numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  }
  if (address->sa_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  // Skips a link-local address, which is of no use without the link's name.
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
  return absl::StrCat(
      "[", inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text), "]");
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "127.") || address == "[::1]";
}

// Sets the addresses of `place` by the route to the store. Sends nothing.
void FollowRoute(const std::string& store, Place* place) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(store.c_str(), "9", &hints, &found) != 0) return;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found,
                                                            &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const base::UniqueFd fd(
        socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t size = sizeof own;
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    if (fd.get() < 0 || connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        getsockname(fd.get(), address, &size) != 0) {
      continue;
    }
    place->own_address = Numeric(address);
    place->store_address = Numeric(one->ai_addr);
    if (!place->own_address.empty()) return;
  }
}

// Returns an address of the interface `name`. If `name` is empty, returns an
// address of the first interface that is up, other than a loopback address.
// Prefers IPv4. Returns "" if there is none. Adds the interfaces' names to
// `*names`.
std::string AddressOf(const std::string& name,
                      std::vector<std::string>* names) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(found, &freeifaddrs);
  std::string v6;
  std::string v4;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    const std::string address =
        one->ifa_addr == nullptr ? "" : Numeric(one->ifa_addr);
    if (address.empty() || (one->ifa_flags & IFF_UP) == 0) continue;
    if (names->empty() || names->back() != one->ifa_name) {
      names->push_back(one->ifa_name);
    }
    const bool fits =
        name.empty() ? !IsLoopback(address) : name == one->ifa_name;
    std::string* const into = address[0] == '[' ? &v6 : &v4;
    if (fits && into->empty()) *into = address;
  }
  return v4.empty() ? v6 : v4;
}

}  // namespace

absl::StatusOr<Place> PlaceOfProcess(const std::string& store) {
  Place place;
  place.host = collectives::HostOfProcess();
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  place.name = name;
  if (!store.empty()) FollowRoute(store, &place);
  const char* const set = getenv("GLOO_SOCKET_IFNAME");
  const std::vector<std::string> wanted =
      absl::StrSplit(set == nullptr ? "" : set, ',');
  if (wanted[0].empty() && !place.own_address.empty()) return place;
  std::vector<std::string> names;
  place.own_address = AddressOf(wanted[0], &names);
  if (wanted[0].empty() || !place.own_address.empty()) return place;
  return absl::FailedPreconditionError(absl::StrCat(
      "GLOO_SOCKET_IFNAME=", set, ": no interface '", wanted[0],
      "' is up and has an address; there are ", absl::StrJoin(names, ", ")));
}

std::string ToText(const Place& place) {
  return absl::StrCat(kLayout, "\n", place.host, "\n", place.name, "\n",
                      place.own_address, "\n", place.store_address);
}

absl::StatusOr<Place> ParsePlace(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() != 5 || lines[0] != kLayout) {
    return absl::InvalidArgumentError(
        "describes itself in a way of another version of Penstock");
  }
  return Place{lines[1], lines[2], lines[3], lines[4]};
}

bool AreOnOneHost(const std::vector<Place>& places) {
  for (const Place& place : places) {
    if (place.host.empty() && places.size() > 1) return false;
    if (place.host != places[0].host) return false;
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> AddressesOf(
    const std::vector<Place>& places) {
  // The store's address, as ranks on other hosts know it.
  std::string store;
  for (const Place& place : places) {
    if (!store.empty() || IsLoopback(place.store_address)) continue;
    store = place.store_address;
  }
  std::vector<std::string> addresses;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const std::string& own = places[rank].own_address;
    addresses.push_back(IsLoopback(own) && !store.empty() ? store : own);
    if (!addresses.back().empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", rank, " (on ", places[rank].name,
        ") knows no address at which other hosts reach it: set "
        "GLOO_SOCKET_IFNAME to the name of its network interface"));
  }
  return addresses;
}

}  // namespace pytorch
}  // namespace penstock
