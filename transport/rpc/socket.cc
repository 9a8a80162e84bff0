#include "transport/rpc/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"
#include "transport/fabric/tcp/receive.h"

namespace penstock {
namespace rpc {
namespace {

bool MayComeLater(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

absl::StatusOr<size_t> Socket::Receive(fabric::tcp::Endpoint* endpoint) {
  return fabric::tcp::Receive(fd_.get(), endpoint);
}

absl::StatusOr<size_t> Socket::Discard() {
  return fabric::tcp::Discard(fd_.get());
}

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

std::string AddressText(const sockaddr_storage& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address),
                                sizeof address, host, sizeof host, port,
                                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return "unknown";
  return address.ss_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                       : absl::StrCat(host, ":", port);
}

}  // namespace rpc
}  // namespace penstock
