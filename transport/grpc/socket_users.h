// Counts the channels and servers whose sockets waiting threads poll.

#ifndef PENSTOCK_TRANSPORT_GRPC_SOCKET_USERS_H_
#define PENSTOCK_TRANSPORT_GRPC_SOCKET_USERS_H_

namespace penstock {
namespace core {

// A member of each object that has connections over Penstock. Stock HTTP/2
// connections of the same channel or server count as well. A process without
// such an object waits as it would with stock gRPC.
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

#endif  // PENSTOCK_TRANSPORT_GRPC_SOCKET_USERS_H_
