#include "transport/progress/acceptor.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace progress {
namespace {

constexpr int kBacklog = 1024;
// Limits the connections that one turn of the loop accepts.
constexpr int kAcceptsPerTurn = 16;
// The pause when no descriptors are left.
constexpr absl::Duration kPauseWithoutRoom = absl::Milliseconds(100);
constexpr absl::Duration kPauseWhileFull = absl::Milliseconds(5);

bool IsForWantOfRoom(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM ||
         error == ENOBUFS;
}

}  // namespace

absl::StatusOr<base::UniqueFd> ListenAt(const sockaddr_storage& address,
                                        socklen_t size) {
  base::UniqueFd fd(
      socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket");
  const int on = 1;
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return base::ErrnoStatus(errno, "bind");
  }
  if (listen(fd.get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, "listen");
  }
  return fd;
}

absl::StatusOr<int> PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return base::ErrnoStatus(errno, "getsockname");
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Acceptor::Acceptor(EventLoop* loop, base::UniqueFd listening, int port,
                   Callbacks callbacks)
    : loop_(loop),
      port_(port),
      listening_(std::move(listening)),
      callbacks_(std::move(callbacks)) {}

absl::StatusOr<std::shared_ptr<Acceptor>> Acceptor::Begin(
    EventLoop* loop, base::UniqueFd listening, Callbacks callbacks) {
  const absl::StatusOr<int> port = PortOf(listening.get());
  if (!port.ok()) return port.status();
  std::shared_ptr<Acceptor> acceptor(
      new Acceptor(loop, std::move(listening), *port, std::move(callbacks)));
  const absl::Status watched = acceptor->Watch();
  if (!watched.ok()) return watched;
  return acceptor;
}

absl::Status Acceptor::Watch() {
  std::shared_ptr<Acceptor> self = shared_from_this();
  base::MutexLock lock(&mu_);
  if (stopped_) return absl::OkStatus();
  const absl::StatusOr<EventLoop::Id> watch = loop_->Watch(
      listening_.get(), EPOLLIN, [self](uint32_t) { self->OnReadable(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void Acceptor::Stop() {
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(stopped_, true)) return;
    loop_->Unwatch(std::exchange(watch_, 0));
  }
  std::shared_ptr<Acceptor> self = shared_from_this();
  loop_->Post([self] {
    self->listening_.Reset();
    self->callbacks_ = Callbacks();
  });
}

void Acceptor::OnReadable() {
  for (int i = 0; i < kAcceptsPerTurn && AcceptOne(); ++i) {
  }
}

// Accepts one connection. Returns true if more connections may be waiting.
bool Acceptor::AcceptOne() {
  {
    base::MutexLock lock(&mu_);
    if (stopped_) return false;
  }
  if (callbacks_.is_full != nullptr && callbacks_.is_full()) {
    PauseFor(kPauseWhileFull);
    return false;
  }
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  base::UniqueFd socket(accept4(listening_.get(),
                                reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) {
    callbacks_.accepted(std::move(socket), address);
    return true;
  }
  // Returns false for other errors. For example, no client is waiting, or a
  // client has gone away.
  if (!IsForWantOfRoom(errno)) return false;
  if (callbacks_.make_room()) return true;
  log_.Warning(absl::StrCat("no descriptors or memory for a connection at ",
                            "port ", port_, "; trying again"));
  PauseFor(kPauseWithoutRoom);
  return false;
}

// Stops accepting for `pause`, so that clients wait in the backlog. Without the
// pause, the loop would call back again and again.
void Acceptor::PauseFor(absl::Duration pause) {
  {
    base::MutexLock lock(&mu_);
    loop_->Unwatch(std::exchange(watch_, 0));
  }
  std::shared_ptr<Acceptor> self = shared_from_this();
  loop_->RunAfter(pause, [self] {
    if (!self->Watch().ok()) self->PauseFor(kPauseWithoutRoom);
  });
}

}  // namespace progress
}  // namespace penstock
