// Counts the channels and servers whose sockets waiting threads poll.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_USERS_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_USERS_H_

namespace penstock {
namespace core {

// A member of each server and each subchannel's connector that use Penstock,
// even if their connections fall back to stock HTTP/2. While the process has a
// SocketUser, waiting threads may spin for sockets before they sleep in epoll.
// Without a SocketUser, threads wait as in stock gRPC.
//
// Thread-safe without locks.
class SocketUser {
 public:
  SocketUser();
  ~SocketUser();
  SocketUser(const SocketUser&) = delete;
  SocketUser& operator=(const SocketUser&) = delete;

  // Returns true if any SocketUser exists in the process.
  static bool Any();
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_SOCKET_USERS_H_
