// Where sockets listen, and how a peer is told: abstract names, or files.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// What fits before a name into the 107 bytes of a socket's path.
constexpr size_t kMaxDirectoryBytes = 65;

struct SocketAddress {
  std::string name;
  // Where it is a file; empty: it is abstract, of one network namespace.
  std::string directory;
};

// A random name, "penstock-<32 hex digits>": nobody can take it before.
absl::StatusOr<std::string> NewSocketName();
bool IsSocketName(absl::string_view text);
// Needs a directory.
std::string PathOf(const SocketAddress& address);

// A socket of packets that listens at `address`; non-blocking. As a file, any
// user may connect to it, as to an abstract one, and it is removed at exit.
absl::StatusOr<base::UniqueFd> ListenAt(const SocketAddress& address);

// A connected one. The peer has not accepted it yet.
absl::StatusOr<base::UniqueFd> ConnectTo(const SocketAddress& address);
// There is a socket, but nobody listens.
bool IsDead(const SocketAddress& address);

// "<host id>\n<name>\n<network namespace>" of an abstract socket, or
// "<host id>\n<name>\n<directory>": lines for the peer to read.
absl::StatusOr<std::string> MakeOffer(const SocketAddress& address);
// How to reach it from this process, which looks for files in its own
// `directory`: that of the offer may have another name here. INVALID_ARGUMENT
// for other text; UNAVAILABLE, with the remedy, for a peer on another host, of
// another network namespace, or in a directory where this process has none.
absl::StatusOr<SocketAddress> AddressIn(absl::string_view offer,
                                        const std::string& directory);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_
