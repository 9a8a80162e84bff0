// The addresses of stripes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ADDRESS_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ADDRESS_H_

#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace fabric {
namespace stripes {

// The address of one end of a TCP connection.
struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  // Parses an address as gRPC writes it: "ipv4:10.0.0.1:5000",
  // "ipv6:[fe80::1%2]:5000", also with "%5B" and "%5D" for the brackets.
  // Returns INVALID_ARGUMENT for other kinds of addresses.
  static absl::StatusOr<Address> Parse(absl::string_view text);
  // Returns the address of the peer of a connected socket.
  static absl::StatusOr<Address> OfPeer(int fd);

  // Returns true if both addresses have the same IP address. Ignores ports. An
  // IPv4 address equals the same address mapped into IPv6.
  bool IsSameHost(const Address& other) const;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ADDRESS_H_
