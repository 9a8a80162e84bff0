#include "transport/fabric/tcp/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "transport/base/status_util.h"
#include "transport/fabric/tcp/receive.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

bool MayComeLater(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

absl::StatusOr<size_t> Socket::Receive(Endpoint* endpoint) {
  return tcp::Receive(fd_.get(), endpoint);
}

absl::StatusOr<size_t> Socket::Discard() { return tcp::Discard(fd_.get()); }

void Socket::Write(std::vector<memory::Bytes> pieces) {
  pieces_ = std::move(pieces);
  next_ = offset_ = 0;
  writing_ = true;
}

absl::StatusOr<bool> Socket::Pump() {
  constexpr size_t kMostPieces = 64;
  if (!writing_) return false;
  while (next_ < pieces_.size()) {
    iovec vectors[kMostPieces];
    size_t count = 0;
    for (size_t i = next_; i < pieces_.size() && count < kMostPieces; ++i) {
      const size_t skip = i == next_ ? offset_ : 0;
      vectors[count++] = {const_cast<uint8_t*>(pieces_[i].data) + skip,
                          pieces_[i].size - skip};
    }
    msghdr message = {};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (MayComeLater(errno)) return false;
      return absl::UnavailableError(
          base::ErrnoStatus(errno, "sendmsg").message());
    }
    Advance(static_cast<size_t>(sent));
  }
  pieces_.clear();
  writing_ = false;
  return true;
}

void Socket::Close() {
  // Shuts the socket down before closing it, because a forked child may have a
  // copy of the descriptor.
  shutdown(fd_.get(), SHUT_RDWR);
  fd_.Reset();
  pieces_.clear();
  writing_ = false;
}

void Socket::Advance(size_t sent) {
  while (next_ < pieces_.size() && sent >= pieces_[next_].size - offset_) {
    sent -= pieces_[next_].size - offset_;
    pieces_[next_] = memory::Bytes();  // releases the piece
    ++next_;
    offset_ = 0;
  }
  offset_ += sent;
}

void SetNoDelay(int fd) {
  const int on = 1;
  // Ignores errors, because a connection without TCP_NODELAY also works.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
