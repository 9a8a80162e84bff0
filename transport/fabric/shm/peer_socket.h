// A UNIX socket to which a peer, or an unknown process, can send.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_SOCKET_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_SOCKET_H_

#include <utility>

#include "transport/base/unique_fd.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// Owns a connected or listening socket. The destructor immediately shuts the
// socket down, which the peer notices, and closes it on another thread. Closing
// may block, because it also closes descriptors that wait in the socket. In a
// forked child, closes the socket without shutting it down, because the parent
// still uses it.
class PeerSocket {
 public:
  PeerSocket() = default;
  // Takes ownership of a descriptor. Implicit, like the constructor of
  // ForeignFd.
  PeerSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}
  PeerSocket(PeerSocket&&) = default;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void Reset();

 private:
  progress::ForeignFd fd_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_SOCKET_H_
