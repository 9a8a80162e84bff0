// Addresses of UNIX sockets, and the offers by which a peer learns these
// addresses. A socket has an abstract name, or is a file.

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

// Limits the length of a directory's path, in bytes. Path and file name must
// fit into the 107 bytes of a socket address.
constexpr size_t kMaxDirectoryBytes = 65;

struct SocketAddress {
  std::string name;
  // The directory of the file. Empty for an abstract socket, which is visible
  // in one network namespace.
  std::string directory;
};

// Returns a random name, "penstock-<32 hex digits>", which nobody else can have
// guessed.
absl::StatusOr<std::string> NewSocketName();
bool IsSocketName(absl::string_view text);
// Returns the path of a socket's file. Needs a directory.
std::string PathOf(const SocketAddress& address);

// Makes a non-blocking packet socket (SOCK_SEQPACKET) that listens at
// `address`. Any user may connect to it. A file is removed at exit.
absl::StatusOr<base::UniqueFd> ListenAt(const SocketAddress& address);

// Makes a socket that is connected to `address`. The peer may not have accepted
// the connection yet. Returns RESOURCE_EXHAUSTED if many connections wait to be
// accepted, and UNAVAILABLE if nobody listens.
absl::StatusOr<base::UniqueFd> ConnectTo(const SocketAddress& address);
// Returns true if a socket at `address` exists and nobody listens on it.
bool IsDead(const SocketAddress& address);

// Returns the offer for `address`, three lines: host id, name and network
// namespace for an abstract socket; host id, name and directory for a file.
absl::StatusOr<std::string> MakeOffer(const SocketAddress& address);
// Returns the address of the socket of `offer`, as seen from this process.
// Looks for files in `directory`, which is this process's setting: the peer may
// see the same directory under another name. Returns INVALID_ARGUMENT if
// `offer` is malformed. Returns UNAVAILABLE, with the remedy, if the peer is on
// another host, in another network namespace, or uses a directory and this
// process uses none.
absl::StatusOr<SocketAddress> AddressIn(absl::string_view offer,
                                        const std::string& directory);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_
