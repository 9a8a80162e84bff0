// The addresses of a TCP connection, and the names that are computed from them.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_TCP_ADDRESS_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace penstock {
namespace event_engine {

// An IP address and a port. An IPv4 address has the IPv6 form ::ffff:a.b.c.d,
// so that both ends of a connection see the same values, even if only one end
// uses IPv6 sockets.
struct TcpAddress {
  std::array<uint8_t, 16> ip = {};
  uint16_t port = 0;

  // Converts a system address. Returns nothing for other kinds of addresses,
  // such as addresses of UNIX sockets.
  static absl::optional<TcpAddress> Of(const sockaddr* address, size_t size);

  // Returns true for 0.0.0.0 and [::], at which a listener accepts connections
  // to every address.
  bool IsWildcard() const;
  bool IsLoopback() const;
  // Returns [::] with the same port.
  TcpAddress Wildcard() const;
  // Returns the IP address for people: "10.9.0.1" or "fd00::1".
  std::string IpText() const;
};

// Returns true if both ends of a connection are on this host. May wrongly
// return false if the route within the host is unusual.
bool IsOnOneHost(const TcpAddress& local, const TcpAddress& peer);

// Returns the name of the abstract UNIX socket for the listener at `address`.
// In rare cases two addresses have the same name; the token then distinguishes
// them.
std::string MeetingName(const TcpAddress& address);
// Returns the token by which the two ends of a connection find each other. The
// token contains both addresses, and is no secret.
std::string MeetingToken(const TcpAddress& client, const TcpAddress& server);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_TCP_ADDRESS_H_
