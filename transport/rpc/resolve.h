// Resolves names of hosts to addresses.

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

// Calls `done` with at least one address of `target`, or with an error. The
// addresses should be tried in their order. If the host is a numeric address,
// calls `done` before returning. Otherwise calls `done` on a thread of
// Aside::kNames, because a name server may be slow; `done` must not block
// there. Concurrent callers with the same target share one query.
void Resolve(const HostPort& target,
             std::function<void(absl::StatusOr<Addresses>)> done);

// Returns the address of a numeric host. Never queries a name server.
absl::StatusOr<Addresses> ParseAddress(const HostPort& target);

// Returns the size of an address of this family.
socklen_t LengthOf(const sockaddr_storage& address);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_RESOLVE_H_
