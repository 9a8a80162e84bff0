#include "transport/monitoring/receive_bytes.h"

#include <sys/socket.h>

#include <cerrno>

namespace penstock {
namespace monitoring {

ssize_t ReceiveBytes(int socket, void* buffer, size_t size) {
  iovec bytes = {buffer, size};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  const ssize_t seen = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  if (seen <= 0) return seen;
  // MSG_CTRUNC means that the message has control data, for which this call
  // left no room.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EPROTO;
    return -1;
  }
  // Reads the peeked bytes, which carry no descriptors and are the first in the
  // socket.
  return recv(socket, buffer, static_cast<size_t>(seen), MSG_DONTWAIT);
}

}  // namespace monitoring
}  // namespace penstock
