#include "transport/rpc/resolve.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace rpc {
namespace {

absl::StatusOr<Addresses> Look(const HostPort& target, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("resolve ", target.host, ": ", gai_strerror(error)));
  }
  Addresses addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    sockaddr_storage& address = addresses.emplace_back();
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return absl::UnavailableError(
        absl::StrCat("resolve ", target.host, ": it has no address"));
  }
  return addresses;
}

}  // namespace

absl::StatusOr<HostPort> SplitHostPort(absl::string_view target) {
  const size_t colon = target.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", target, "\" is no address of the form host:port"));
  }
  absl::string_view host = target.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostPort{std::string(host), absl::StrCat(port)};
}

absl::StatusOr<Addresses> ParseAddress(const HostPort& target) {
  return Look(target, AI_NUMERICHOST);
}

void Resolve(const HostPort& target,
             std::function<void(absl::StatusOr<Addresses>)> done) {
  absl::StatusOr<Addresses> parsed = ParseAddress(target);
  if (parsed.ok()) return done(std::move(parsed));
  progress::RunAside(
      [target, done = std::move(done)] { done(Look(target, AI_ADDRCONFIG)); });
}

socklen_t LengthOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6)
                                       : sizeof(sockaddr_in);
}

}  // namespace rpc
}  // namespace penstock
