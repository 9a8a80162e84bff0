// Names of hosts to addresses.

#ifndef PENSTOCK_TRANSPORT_RPC_RESOLVE_H_
#define PENSTOCK_TRANSPORT_RPC_RESOLVE_H_

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace rpc {

struct HostPort {
  std::string host;
  std::string port;
};

// Splits "host:port" or "[::1]:port". Returns INVALID_ARGUMENT for other text.
absl::StatusOr<HostPort> SplitHostPort(absl::string_view target);

using Addresses = std::vector<sockaddr_storage>;

// Calls `done` with the addresses of `target`, one at least, in the order in
// which to try them. If the host is a number, calls `done` before it returns.
// If not, calls `done` on a thread of Aside::kNames, since a name server may
// take its time; `done` must not block there. Asks once for all that want a
// target at a time.
void Resolve(const HostPort& target,
             std::function<void(absl::StatusOr<Addresses>)> done);

// Returns the address of a number; never asks a name server.
absl::StatusOr<Addresses> ParseAddress(const HostPort& target);

// The size of an address of that family.
socklen_t LengthOf(const sockaddr_storage& address);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_RESOLVE_H_
