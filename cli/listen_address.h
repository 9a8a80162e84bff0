// Where a server listens, as people write it.

#ifndef PENSTOCK_CLI_LISTEN_ADDRESS_H_
#define PENSTOCK_CLI_LISTEN_ADDRESS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

struct ListenAddress {
  std::string host;         // a name, or an IP address without brackets
  std::optional<int> port;  // none: not given

  // Parses "0.0.0.0", "0.0.0.0:7000", "::1", "[::1]" and "[::1]:7000"; a port
  // is 0 to 65535. INVALID_ARGUMENT says what of `text` is wrong, and what
  // would be right.
  static absl::StatusOr<ListenAddress> Parse(absl::string_view text);
  // "HOST:PORT", as gRPC wants it.
  std::string WithPort(int port) const;
  // Whether it stands for all addresses of the machine.
  bool is_any() const { return host == "0.0.0.0" || host == "::"; }
  // Where programs of this machine reach it then.
  const char* loopback() const { return host == "::" ? "[::1]" : "127.0.0.1"; }
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_LISTEN_ADDRESS_H_
