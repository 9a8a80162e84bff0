// A UNIX socket that a peer, or whoever is no peer yet, can send to.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_SOCKET_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_PEER_SOCKET_H_

#include <utility>

#include "transport/base/unique_fd.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// The one owner of a connected socket, or of a listening one. The other side
// sees the end at once, but it is closed where that may block: descriptors that
// wait in it are closed with it. In a forked child it goes without a word, for
// the parent's goes on.
class PeerSocket {
 public:
  PeerSocket() = default;
  // Implicit, as ForeignFd's.
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
