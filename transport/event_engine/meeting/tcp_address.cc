#include "transport/event_engine/meeting/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace event_engine {
namespace {

// The first 12 bytes of an IPv4 address in its IPv6 form.
constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0,    0,
                                             0, 0, 0, 0, 0xff, 0xff};

bool IsMapped(const std::array<uint8_t, 16>& ip) {
  return std::equal(kMapped.begin(), kMapped.end(), ip.begin());
}

// Returns the hash FNV-1a, which is equal in all builds.
uint64_t HashOf(const std::array<uint8_t, 16>& ip) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : ip) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

void AppendAddress(const TcpAddress& address, std::string* out) {
  out->append(reinterpret_cast<const char*>(address.ip.data()),
              address.ip.size());
  wire::AppendNumber(address.port, out);
}

}  // namespace

absl::optional<TcpAddress> TcpAddress::Of(const sockaddr* address,
                                          size_t size) {
  TcpAddress result;
  if (size >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    std::copy(kMapped.begin(), kMapped.end(), result.ip.begin());
    std::memcpy(&result.ip[kMapped.size()], &v4.sin_addr, 4);
    result.port = ntohs(v4.sin_port);
    return result;
  }
  if (size >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    std::memcpy(result.ip.data(), &v6.sin6_addr, result.ip.size());
    result.port = ntohs(v6.sin6_port);
    return result;
  }
  return absl::nullopt;
}

bool TcpAddress::IsWildcard() const {
  const size_t begin = IsMapped(ip) ? kMapped.size() : 0;
  return std::all_of(ip.begin() + begin, ip.end(),
                     [](uint8_t byte) { return byte == 0; });
}

bool TcpAddress::IsLoopback() const {
  if (IsMapped(ip)) return ip[kMapped.size()] == 127;
  return ip[15] == 1 && std::all_of(ip.begin(), ip.end() - 1,
                                    [](uint8_t byte) { return byte == 0; });
}

TcpAddress TcpAddress::Wildcard() const {
  TcpAddress wildcard;
  wildcard.port = port;
  return wildcard;
}

std::string TcpAddress::IpText() const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, ip.data(), text, sizeof text);
  absl::string_view view = text;
  absl::ConsumePrefix(&view, "::ffff:");
  return std::string(view);
}

bool IsOnOneHost(const TcpAddress& local, const TcpAddress& peer) {
  return local.ip == peer.ip || (local.IsLoopback() && peer.IsLoopback());
}

std::string MeetingName(const TcpAddress& address) {
  const auto& ip = address.IsWildcard() ? address.Wildcard().ip : address.ip;
  // Returns a name of the same length as the names of Penstock's other sockets.
  return absl::StrFormat("penstock-ee1-%016x-%04x-listen", HashOf(ip),
                         address.port);
}

std::string MeetingToken(const TcpAddress& client, const TcpAddress& server) {
  std::string token = "tcp ";
  AppendAddress(client, &token);
  AppendAddress(server, &token);
  return token;
}

}  // namespace event_engine
}  // namespace penstock
