#include "transport/fabric/shm/peer_socket.h"

#include <sys/socket.h>

namespace penstock {
namespace fabric {
namespace shm {

PeerSocket& PeerSocket::operator=(PeerSocket&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  fd_ = std::move(other.fd_);
  return *this;
}

void PeerSocket::Reset() {
  if (fd_.valid() && !fd_.is_of_parent()) shutdown(fd_.get(), SHUT_RDWR);
  fd_.Reset();
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
