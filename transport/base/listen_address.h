// The address of a server, as users write it.

#ifndef PENSTOCK_TRANSPORT_BASE_LISTEN_ADDRESS_H_
#define PENSTOCK_TRANSPORT_BASE_LISTEN_ADDRESS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

struct ListenAddress {
  std::string host;         // a name, or an IP address without brackets
  std::optional<int> port;  // empty if not given

  // Parses "0.0.0.0", "0.0.0.0:7000", "::1", "[::1]" and "[::1]:7000". A port
  // is 0 to 65535. Returns INVALID_ARGUMENT, with the wrong part and a
  // correction, for any other text.
  static absl::StatusOr<ListenAddress> Parse(absl::string_view text);
  // Returns "HOST:PORT" in gRPC's format.
  std::string WithPort(int port) const;
  // Returns true if the address stands for all addresses of the machine.
  bool is_any() const { return host == "0.0.0.0" || host == "::"; }
  // Returns the address by which clients on this machine reach the server.
  // Requires is_any().
  const char* loopback() const { return host == "::" ? "[::1]" : "127.0.0.1"; }
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LISTEN_ADDRESS_H_
