#include "transport/rpc/listener.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/status_util.h"
#include "transport/rpc/resolve.h"
#include "transport/rpc/socket.h"

namespace penstock {
namespace rpc {
namespace {

constexpr int kBacklog = 1024;
// How many connections one turn of the loop accepts.
constexpr int kAcceptsPerTurn = 16;
// How long to wait when there are no descriptors left.
constexpr absl::Duration kPause = absl::Milliseconds(100);

absl::StatusOr<base::UniqueFd> Bind(const sockaddr_storage& address,
                                    const std::string& text) {
  base::UniqueFd fd(
      socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket");
  const int on = 1;
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
           LengthOf(address)) != 0) {
    return base::ErrnoStatus(errno, "bind to " + text);
  }
  if (listen(fd.get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, "listen at " + text);
  }
  return fd;
}

absl::StatusOr<int> PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return base::ErrnoStatus(errno, "getsockname");
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

Listener::Listener(progress::EventLoop* loop, base::UniqueFd socket, int port,
                   Accepted accepted)
    : loop_(loop),
      port_(port),
      socket_(std::move(socket)),
      accepted_(std::move(accepted)) {}

absl::StatusOr<std::shared_ptr<Listener>> Listener::Listen(
    progress::EventLoop* loop, const std::string& address, Accepted accepted) {
  const absl::StatusOr<HostPort> target = SplitHostPort(address);
  if (!target.ok()) return target.status();
  const absl::StatusOr<Addresses> addresses = ParseAddress(*target);
  if (!addresses.ok()) return addresses.status();
  absl::StatusOr<base::UniqueFd> fd = Bind(addresses->front(), address);
  if (!fd.ok()) return fd.status();
  const absl::StatusOr<int> port = PortOf(fd->get());
  if (!port.ok()) return port.status();
  std::shared_ptr<Listener> listener(
      new Listener(loop, *std::move(fd), *port, std::move(accepted)));
  const absl::Status watched = listener->Watch();
  if (!watched.ok()) return watched;
  return listener;
}

absl::Status Listener::Watch() {
  std::shared_ptr<Listener> self = shared_from_this();
  base::MutexLock lock(&mu_);
  if (stopped_) return absl::OkStatus();
  const absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
      socket_.get(), EPOLLIN, [self](uint32_t) { self->OnReadable(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void Listener::Stop() {
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(stopped_, true)) return;
    loop_->Unwatch(std::exchange(watch_, 0));
  }
  std::shared_ptr<Listener> self = shared_from_this();
  loop_->Post([self] {
    self->socket_.Reset();
    self->accepted_ = nullptr;
  });
}

void Listener::OnReadable() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    {
      base::MutexLock lock(&mu_);
      if (stopped_) return;
    }
    sockaddr_storage address = {};
    socklen_t length = sizeof address;
    base::UniqueFd socket(accept4(socket_.get(),
                                  reinterpret_cast<sockaddr*>(&address),
                                  &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      const int error = errno;
      if (error == EMFILE || error == ENFILE || error == ENOMEM ||
          error == ENOBUFS) {
        PauseAccepting();
      }
      return;  // or nobody is there, or went away
    }
    SetNoDelay(socket.get());
    accepted_(std::move(socket), AddressText(address));
  }
}

// The client waits in the backlog meanwhile. Without the pause, the loop would
// be called again and again.
void Listener::PauseAccepting() {
  base::LogWarning(absl::StrCat("no descriptors or memory for a connection at ",
                                "port ", port_, "; trying again"));
  {
    base::MutexLock lock(&mu_);
    loop_->Unwatch(std::exchange(watch_, 0));
  }
  std::shared_ptr<Listener> self = shared_from_this();
  loop_->RunAfter(kPause, [self] {
    if (!self->Watch().ok()) self->PauseAccepting();
  });
}

}  // namespace rpc
}  // namespace penstock
