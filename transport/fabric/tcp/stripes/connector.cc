#include "transport/fabric/tcp/stripes/connector.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "transport/base/descriptors.h"
#include "transport/base/status_util.h"
#include "transport/fabric/tcp/stripes/endpoint.h"
#include "transport/fabric/tcp/stripes/greeting.h"

namespace penstock {
namespace fabric {
namespace stripes {
Connector::Connector(progress::EventLoop* loop,
                     std::shared_ptr<Attempt> attempt, const Address& address,
                     int count, absl::Duration limit)
    : TimedSetup(loop, std::move(attempt), limit,
                 "the peer did not accept further connections in time"),
      address_(address),
      openings_(count) {}

void Connector::BeginOnLoop() {
  for (size_t i = 0; i < openings_.size() && !has_ended(); ++i) {
    const absl::Status opened = Open(i);
    if (!opened.ok()) FinishOnLoop(opened);
  }
}

void Connector::ReleaseOnLoop() {
  for (Opening& opening : openings_) {
    loop()->Unwatch(std::exchange(opening.watch, 0));
    EndSocket(std::move(opening.socket));
  }
}

absl::Status Connector::Open(size_t index) {
  // Checks the free descriptors before each socket, because other sessions open
  // sockets, too.
  absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return room;
  Opening* const opening = &openings_[index];
  opening->socket.Reset(socket(address_.storage.ss_family,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!opening->socket.valid()) return base::ErrnoStatus(errno, "socket");
  if (connect(opening->socket.get(),
              reinterpret_cast<const sockaddr*>(&address_.storage),
              address_.length) != 0 &&
      errno != EINPROGRESS) {
    return base::ErrnoStatus(errno, "connect a further socket");
  }
  std::shared_ptr<TimedSetup> self = shared_from_this();
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop()->Watch(opening->socket.get(), EPOLLOUT,
                    [this, self, index](uint32_t) { OnEvent(index); });
  if (!watch.ok()) return watch.status();
  opening->watch = *watch;
  return absl::OkStatus();
}

void Connector::OnEvent(size_t index) {
  Opening* const opening = &openings_[index];
  if (has_ended() || opening->watch == 0) return;
  const absl::Status status =
      opening->greeted ? TakeAnswer(opening) : Greet(index);
  if (!status.ok()) return FinishOnLoop(status);
  if (!std::exchange(opening->greeted, true)) {
    loop()->SetEvents(opening->watch, EPOLLIN);
  }
  if (opening->answer.size() < kAnswerBytes) return;
  loop()->Unwatch(std::exchange(opening->watch, 0));
  if (++answered_ < openings_.size()) return;
  std::vector<base::UniqueFd> sockets;
  for (Opening& each : openings_) sockets.push_back(std::move(each.socket));
  FinishOnLoop(StripesEndpoint::Create(std::move(sockets)));
}

absl::Status Connector::TakeAnswer(Opening* opening) {
  char bytes[kAnswerBytes];
  // Leaves the bytes after the answer to the endpoint.
  const ssize_t got = recv(opening->socket.get(), bytes,
                           kAnswerBytes - opening->answer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return absl::OkStatus();
  if (got > 0) opening->answer.append(bytes, static_cast<size_t>(got));
  if (got <= 0 || !IsAnswer(opening->answer)) {
    return absl::UnavailableError(
        "a further socket reached no server that waits for it (a proxy may "
        "have passed it to another server)");
  }
  return absl::OkStatus();
}

absl::Status Connector::Greet(size_t index) {
  const int fd = openings_[index].socket.get();
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return base::ErrnoStatus(error, "connect a further socket");
  Greeting greeting;
  greeting.index = static_cast<uint8_t>(index);
  greeting.count = static_cast<uint8_t>(openings_.size());
  greeting.token = attempt().token();
  const std::string bytes = EncodeGreeting(greeting);
  // Sends the greeting in one call, because a new socket has room for all of
  // it.
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the peer closed a further socket");
  }
  return absl::OkStatus();
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
