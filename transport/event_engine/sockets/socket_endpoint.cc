#include "transport/event_engine/sockets/socket_endpoint.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "grpc/slice.h"
#include "grpc/slice_buffer.h"
#include "transport/base/mutex.h"
#include "transport/base/status_util.h"
#include "transport/event_engine/sockets/read_memory.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace event_engine {
namespace {

// Limits the bytes that one read collects. gRPC then handles these bytes while
// the peer sends more.
constexpr size_t kMostReadBytes = 256 * 1024;
// Limits the slices of one system call.
constexpr size_t kMostPieces = 64;

// Returns `call()`, repeated while a signal interrupts it.
template <typename Call>
ssize_t Uninterrupted(const Call& call) {
  ssize_t result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

bool WouldBlock(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

absl::Status Broken(absl::string_view operation) {
  return absl::UnavailableError(base::ErrnoStatus(errno, operation).message());
}

// Returns the address that `get` reports, which is getsockname() or
// getpeername().
absl::StatusOr<SocketEndpoint::EventEngine::ResolvedAddress> AddressBy(
    int (*get)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (get(fd, generic, &size) != 0) return Broken("address of a socket");
  return SocketEndpoint::EventEngine::ResolvedAddress(generic, size);
}

}  // namespace

// The socket, and the pending operations of gRPC. Outlives the endpoint while a
// thread uses it.
class SocketEndpoint::Socket : public std::enable_shared_from_this<Socket> {
 public:
  Socket(base::UniqueFd fd, Crew* crew) : crew_(crew), fd_(std::move(fd)) {}

  absl::Status Watch();
  bool Read(Callback on_read, SliceBuffer* buffer);
  bool Write(Callback on_written, SliceBuffer* data);
  void Close();

 private:
  void OnEvent();
  // Calls `callback` on the crew.
  void Finish(Callback callback, const absl::Status& status);
  // Appends the bytes that have arrived. Records the end of the stream.
  void ReceiveLocked(SliceBuffer* buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends from `sent_` on. Returns false if the socket has no room.
  bool SendLocked(SliceBuffer* data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // How much of the slices has been sent.
  struct Position {
    size_t slice = 0;
    size_t byte = 0;  // of the slice
  };
  static size_t Gather(const grpc_slice_buffer& slices, Position from,
                       iovec* pieces);
  static void Advance(const grpc_slice_buffer& slices, size_t size,
                      Position* position);

  Crew* const crew_;
  const uint32_t fork_count_ = progress::ForkCount();
  const base::UniqueFd fd_;
  Watches::Id watch_ = 0;  // written before gRPC has the endpoint

  base::Mutex mu_;
  ReadMemory memory_ ABSL_GUARDED_BY(mu_);
  Callback on_read_ ABSL_GUARDED_BY(mu_);
  SliceBuffer* read_buffer_ ABSL_GUARDED_BY(mu_) = nullptr;
  absl::Status read_failure_ ABSL_GUARDED_BY(mu_);
  Callback on_written_ ABSL_GUARDED_BY(mu_);
  SliceBuffer unsent_ ABSL_GUARDED_BY(mu_);
  Position sent_ ABSL_GUARDED_BY(mu_);
  absl::Status write_failure_ ABSL_GUARDED_BY(mu_);
};

absl::Status SocketEndpoint::Socket::Watch() {
  absl::StatusOr<Watches::Id> watch = crew_->watches()->AddSocket(
      fd_.get(), [self = shared_from_this()] { self->OnEvent(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void SocketEndpoint::Socket::Finish(Callback callback,
                                    const absl::Status& status) {
  crew_->Run(
      [callback = std::move(callback), status]() mutable { callback(status); });
}

bool SocketEndpoint::Socket::Read(Callback on_read, SliceBuffer* buffer) {
  base::MutexLock lock(&mu_);
  buffer->Clear();
  if (read_failure_.ok()) ReceiveLocked(buffer);
  if (buffer->Length() > 0) return true;
  if (!read_failure_.ok()) {
    Finish(std::move(on_read), read_failure_);
    return false;
  }
  on_read_ = std::move(on_read);
  read_buffer_ = buffer;
  return false;
}

void SocketEndpoint::Socket::ReceiveLocked(SliceBuffer* buffer) {
  while (buffer->Length() < kMostReadBytes) {
    const absl::Span<uint8_t> space = memory_.Next();
    const ssize_t got = Uninterrupted([&] {
      return recv(fd_.get(), space.data(), space.size(), MSG_DONTWAIT);
    });
    if (WouldBlock(got)) return;
    if (got <= 0) {
      read_failure_ =
          got == 0 ? absl::UnavailableError("Socket closed") : Broken("recv");
      return;
    }
    const auto size = static_cast<size_t>(got);
    memory_.Take(size, buffer);
    // Returns after a short read. Bytes that arrive later are found by the next
    // read or the next event.
    if (size < space.size()) return;
  }
}

bool SocketEndpoint::Socket::Write(Callback on_written, SliceBuffer* data) {
  base::MutexLock lock(&mu_);
  sent_ = Position();
  const bool ended = !write_failure_.ok() || SendLocked(data);
  if (!write_failure_.ok()) {
    Finish(std::move(on_written), write_failure_);
    return false;
  }
  if (ended) return true;
  unsent_.Swap(*data);
  on_written_ = std::move(on_written);
  return false;
}

bool SocketEndpoint::Socket::SendLocked(SliceBuffer* data) {
  const grpc_slice_buffer& slices = *data->c_slice_buffer();
  for (;;) {
    iovec pieces[kMostPieces];
    msghdr message = {};
    message.msg_iov = pieces;
    message.msg_iovlen = Gather(slices, sent_, pieces);
    if (message.msg_iovlen == 0) return true;
    const ssize_t sent = Uninterrupted([&] {
      return sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    });
    if (WouldBlock(sent)) return false;
    if (sent < 0) {
      write_failure_ = Broken("sendmsg");
      return true;
    }
    Advance(slices, static_cast<size_t>(sent), &sent_);
  }
}

// Fills `pieces` with the bytes that follow `from`, and returns their number.
size_t SocketEndpoint::Socket::Gather(const grpc_slice_buffer& slices,
                                      Position from, iovec* pieces) {
  size_t count = 0;
  for (; from.slice < slices.count && count < kMostPieces; ++from.slice) {
    const grpc_slice& slice = slices.slices[from.slice];
    const size_t size = GRPC_SLICE_LENGTH(slice) - from.byte;
    if (size > 0) {
      auto* const data =
          const_cast<uint8_t*>(GRPC_SLICE_START_PTR(slice)) + from.byte;
      pieces[count++] = {data, size};
    }
    from.byte = 0;
  }
  return count;
}

void SocketEndpoint::Socket::Advance(const grpc_slice_buffer& slices,
                                     size_t size, Position* position) {
  while (size > 0) {
    const size_t left =
        GRPC_SLICE_LENGTH(slices.slices[position->slice]) - position->byte;
    if (size < left) {
      position->byte += size;
      return;
    }
    size -= left;
    *position = {position->slice + 1, 0};
  }
}

void SocketEndpoint::Socket::OnEvent() {
  SliceBuffer sent;  // dropped without the lock: a program's function may run
  base::MutexLock lock(&mu_);
  if (on_read_ != nullptr && read_failure_.ok()) {
    ReceiveLocked(read_buffer_);
    const bool has_read = read_buffer_->Length() > 0;
    if (has_read || !read_failure_.ok()) {
      Finish(std::exchange(on_read_, nullptr),
             has_read ? absl::OkStatus() : read_failure_);
    }
  }
  if (on_written_ != nullptr && SendLocked(&unsent_)) {
    sent.Swap(unsent_);
    Finish(std::exchange(on_written_, nullptr), write_failure_);
  }
}

// Does not shut the socket down in the child of a fork, because the parent uses
// it.
void SocketEndpoint::Socket::Close() {
  if (fork_count_ != progress::ForkCount()) return;
  crew_->watches()->Remove(watch_);
  shutdown(fd_.get(), SHUT_RDWR);
  SliceBuffer unsent;
  base::MutexLock lock(&mu_);
  read_failure_ = write_failure_ =
      absl::CancelledError("the endpoint was destroyed");
  unsent.Swap(unsent_);
  if (on_read_ != nullptr) {
    Finish(std::exchange(on_read_, nullptr), read_failure_);
  }
  if (on_written_ != nullptr) {
    Finish(std::exchange(on_written_, nullptr), write_failure_);
  }
}

absl::StatusOr<std::unique_ptr<SocketEndpoint::EventEngine::Endpoint>>
SocketEndpoint::Create(base::UniqueFd socket, Crew* crew) {
  const auto local = AddressBy(&getsockname, socket.get());
  const auto peer = AddressBy(&getpeername, socket.get());
  if (!local.ok()) return local.status();
  if (!peer.ok()) return peer.status();
  auto shared = std::make_shared<Socket>(std::move(socket), crew);
  absl::Status watched = shared->Watch();
  if (!watched.ok()) return watched;
  return std::unique_ptr<EventEngine::Endpoint>(
      new SocketEndpoint(std::move(shared), *local, *peer));
}

SocketEndpoint::SocketEndpoint(std::shared_ptr<Socket> socket,
                               const EventEngine::ResolvedAddress& local,
                               const EventEngine::ResolvedAddress& peer)
    : socket_(std::move(socket)), local_(local), peer_(peer) {}

SocketEndpoint::~SocketEndpoint() { socket_->Close(); }

bool SocketEndpoint::Read(Callback on_read, SliceBuffer* buffer, ReadArgs) {
  return socket_->Read(std::move(on_read), buffer);
}

bool SocketEndpoint::Write(Callback on_written, SliceBuffer* data, WriteArgs) {
  return socket_->Write(std::move(on_written), data);
}

}  // namespace event_engine
}  // namespace penstock
