#include "transport/fabric/tcp/receive.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

// The size of a buffer, in bytes. The buffer holds several small
// messages. Bytes of a large message that arrive with its announcement are
// copied from the buffer.
constexpr size_t kBufferBytes = 16 * 1024;
// Limits the bytes that one call receives beyond the memory of a read. These
// bytes are copied, even if they belong to a later read.
constexpr size_t kTailBytes = kLeastRoom;

// Borrows the thread's buffer, or allocates another buffer if the first is in
// use: a doorbell among the received bytes makes the session receive from its
// other sockets, within the first receive.
class BorrowedBuffer {
 public:
  BorrowedBuffer() : bytes_(std::move(Spare())) {
    if (bytes_ == nullptr) bytes_.reset(new uint8_t[kBufferBytes]);
  }
  ~BorrowedBuffer() { Spare() = std::move(bytes_); }
  BorrowedBuffer(const BorrowedBuffer&) = delete;
  BorrowedBuffer& operator=(const BorrowedBuffer&) = delete;

  uint8_t* data() { return bytes_.get(); }

 private:
  static std::unique_ptr<uint8_t[]>& Spare() {
    static thread_local std::unique_ptr<uint8_t[]> spare;
    return spare;
  }

  std::unique_ptr<uint8_t[]> bytes_;
};

absl::StatusOr<size_t> ReceiveOnce(int fd, absl::Span<iovec> into) {
  msghdr message = {};
  message.msg_iov = into.data();
  message.msg_iovlen = into.size();
  ssize_t result;
  do {
    result = recvmsg(fd, &message, MSG_DONTWAIT);
  } while (result < 0 && errno == EINTR);
  if (result > 0) return static_cast<size_t>(result);
  if (result == 0) {
    return absl::UnavailableError("the peer closed the connection");
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
  return absl::UnavailableError(base::ErrnoStatus(errno, "recvmsg").message());
}

}  // namespace

absl::StatusOr<size_t> Receive(int fd, Endpoint* endpoint) {
  const absl::Span<uint8_t> place = endpoint->place();
  BorrowedBuffer buffer;
  iovec into[] = {
      {place.data(), place.size()},
      {buffer.data(), place.empty() ? kBufferBytes : kTailBytes},
  };
  absl::StatusOr<size_t> received = ReceiveOnce(fd, absl::MakeSpan(into));
  if (!received.ok() || *received == 0) return received;
  const size_t placed = std::min(*received, place.size());
  endpoint->BeginBatch();
  if (placed > 0) endpoint->OnPlaced(placed);
  endpoint->OnBytes({buffer.data(), *received - placed});
  endpoint->EndBatch();
  return received;
}

absl::StatusOr<size_t> Discard(int fd) {
  BorrowedBuffer buffer;
  iovec into[] = {{buffer.data(), kBufferBytes}};
  return ReceiveOnce(fd, absl::MakeSpan(into));
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
