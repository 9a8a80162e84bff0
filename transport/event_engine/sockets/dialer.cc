#include "transport/event_engine/sockets/dialer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/unique_fd.h"
#include "transport/event_engine/sockets/socket_endpoint.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::EventEngine;

// Returns an error in gRPC's words.
absl::Status SystemError(int error) {
  return absl::UnknownError(
      absl::StrCat("Failed to connect to remote host: ", std::strerror(error)));
}

// Returns true if a connect() is no longer in progress.
bool HasEnded(int fd) {
  pollfd asked = {fd, POLLOUT, 0};
  return poll(&asked, 1, 0) > 0;
}

absl::Status ResultOf(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : SystemError(error);
}

}  // namespace

// One attempt to connect. Only the thread that has removed the attempt from the
// dialer's map may end it.
struct Dialer::Attempt {
  OnConnect done;
  base::UniqueFd fd;
  Watches::Id watch = 0;
  progress::EventLoop::Id timer = 0;
};

EventEngine::ConnectionHandle Dialer::Connect(
    OnConnect done, const EventEngine::ResolvedAddress& address,
    const SocketOptions& options, absl::Duration timeout) {
  auto attempt = std::make_shared<Attempt>();
  attempt->done = std::move(done);
  // Holds the lock while the attempt is incomplete, so that no event reaches
  // it.
  base::MutexLock lock(&mu_);
  const Id id = next_id_++;
  attempts_[id] = attempt;
  const absl::Status begun =
      Begin(id, attempt.get(), address, options, timeout);
  if (!begun.ok()) EndSoon(id, begun);
  return {{reinterpret_cast<intptr_t>(this), id}};
}

absl::Status Dialer::Begin(Id id, Attempt* attempt,
                           const EventEngine::ResolvedAddress& address,
                           const SocketOptions& options,
                           absl::Duration timeout) {
  const int family = address.address()->sa_family;
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError(errno);
  attempt->fd.Reset(fd);
  options.ApplyTo(fd);
  if (connect(fd, address.address(), address.size()) != 0 &&
      errno != EINPROGRESS) {
    return SystemError(errno);
  }
  // Watches the socket. A connection that is already established gets its event
  // immediately.
  const auto watch = crew_->watches()->AddSocket(fd, [this, id, fd] {
    if (HasEnded(fd)) EndSoon(id, ResultOf(fd));
  });
  if (!watch.ok()) return watch.status();
  attempt->watch = *watch;
  const auto loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  attempt->timer = (*loop)->RunAfter(timeout, [this, id] {
    EndSoon(id, absl::DeadlineExceededError("connect() timed out"));
  });
  return absl::OkStatus();
}

void Dialer::EndSoon(Id id, const absl::Status& status) {
  crew_->Run([this, id, status] { End(id, status); });
}

void Dialer::End(Id id, const absl::Status& status) {
  const std::shared_ptr<Attempt> attempt = Take(id);
  if (attempt == nullptr) return;
  if (!status.ok()) return attempt->done(status);
  attempt->done(SocketEndpoint::Create(std::move(attempt->fd), crew_));
}

std::shared_ptr<Dialer::Attempt> Dialer::Take(Id id) {
  base::MutexLock lock(&mu_);
  auto it = attempts_.find(id);
  if (it == attempts_.end()) return nullptr;
  std::shared_ptr<Attempt> attempt = std::move(it->second);
  attempts_.erase(it);
  crew_->watches()->Remove(attempt->watch);
  const auto loop = progress::EventLoop::Get();
  if (loop.ok()) (*loop)->Cancel(attempt->timer);
  return attempt;
}

bool Dialer::Owns(const EventEngine::ConnectionHandle& handle) const {
  return handle.keys[0] == reinterpret_cast<intptr_t>(this);
}

bool Dialer::Cancel(const EventEngine::ConnectionHandle& handle) {
  return Take(handle.keys[1]) != nullptr;
}

}  // namespace event_engine
}  // namespace penstock
