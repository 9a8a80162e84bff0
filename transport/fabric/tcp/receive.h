// Receives the bytes of a session from a socket.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_RECEIVE_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_RECEIVE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {

// Receives once from `fd`, and passes the bytes to `endpoint`. The kernel
// writes the bytes of a large message directly into the destination of its
// read. Other bytes go through a buffer of the thread. Returns the number of
// bytes. Returns 0 if no bytes are available. Returns UNAVAILABLE at the end of
// the stream, and if the connection is broken. Does not block.
absl::StatusOr<size_t> Receive(int fd, Endpoint* endpoint);

// Receives once, and drops the bytes. Returns as Receive() does.
absl::StatusOr<size_t> Discard(int fd);

// The smallest buffer, in bytes, with which Receive() calls the kernel. If
// Receive() returns fewer bytes, the socket was empty.
constexpr size_t kLeastRoom = 1024;

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_RECEIVE_H_
