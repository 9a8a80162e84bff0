// Converts addresses of RDMA devices, of this machine and in a peer's offer.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_ADDRESS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace fabric {
namespace verbs {

// An IPv4 or IPv6 address with a port.
class Address {
 public:
  // Converts an IPv4 or IPv6 address. Returns an error for any other family.
  static absl::StatusOr<Address> From(const sockaddr& address);
  // Parses "10.9.0.1" or "fe80::1". Does not resolve names.
  static absl::StatusOr<Address> Parse(absl::string_view text, uint16_t port);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr& value() const {
    return reinterpret_cast<const sockaddr&>(storage_);
  }
  bool is_v6() const { return storage_.ss_family == AF_INET6; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // Returns the address's GID of 16 bytes: IPv4 is mapped into IPv6.
  std::string AsGid() const;
  // Returns the address without the port.
  std::string Text() const;

 private:
  sockaddr_storage storage_ = {};
};

// Returns an address of any family, for people.
std::string AddressText(const sockaddr& address);

// Returns the addresses of this machine's active interfaces, except loopback.
absl::StatusOr<std::vector<Address>> InterfaceAddresses();

// Returns the addresses as text, one line for each: "<address> <port>".
std::string MakeOffer(const std::vector<Address>& addresses);
// Limits the number of addresses in an offer. An offer is a text that
// MakeOffer() writes and ParseOffer() parses. ParseOffer() returns
// INVALID_ARGUMENT for any other text.
constexpr size_t kMaxOffered = 16;
absl::StatusOr<std::vector<Address>> ParseOffer(absl::string_view offer);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_ADDRESS_H_
