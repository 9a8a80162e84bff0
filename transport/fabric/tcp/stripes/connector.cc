#include "transport/fabric/tcp/stripes/connector.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "transport/base/status_util.h"
#include "transport/fabric/tcp/stripes/endpoint.h"
#include "transport/fabric/tcp/stripes/greeting.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

bool ParseV4(const std::string& host, uint16_t port, Address* address) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address->storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  address->length = sizeof *v4;
  return inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1;
}

// Parses "fe80::1%2" or "fe80::1%eth0": an address with an optional interface.
bool ParseV6(const std::string& host, uint16_t port, Address* address) {
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address->storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  address->length = sizeof *v6;
  const size_t percent = host.find('%');
  if (percent != std::string::npos) {
    const std::string scope = host.substr(percent + 1);
    uint32_t index = 0;
    if (!absl::SimpleAtoi(scope, &index)) {
      index = if_nametoindex(scope.c_str());
    }
    v6->sin6_scope_id = index;
  }
  return inet_pton(AF_INET6, host.substr(0, percent).c_str(), &v6->sin6_addr) ==
         1;
}

}  // namespace

absl::StatusOr<Address> Address::Parse(absl::string_view text) {
  const std::string plain =
      absl::StrReplaceAll(text, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = plain;
  const bool is_v6 = absl::ConsumePrefix(&rest, "ipv6:[");
  const absl::string_view before_port = is_v6 ? "]:" : ":";
  if (is_v6 || absl::ConsumePrefix(&rest, "ipv4:")) {
    const size_t end = rest.rfind(before_port);
    uint32_t port = 0;
    Address address;
    if (end != absl::string_view::npos &&
        absl::SimpleAtoi(rest.substr(end + before_port.size()), &port) &&
        port <= UINT16_MAX) {
      const std::string host(rest.substr(0, end));
      const auto number = static_cast<uint16_t>(port);
      if (is_v6 ? ParseV6(host, number, &address)
                : ParseV4(host, number, &address)) {
        return address;
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the connection is not one of gRPC over TCP: ", text));
}

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
    opening.socket.Reset();
  }
}

absl::Status Connector::Open(size_t index) {
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
                    [this, self, index](uint32_t) { OnWritable(index); });
  if (!watch.ok()) return watch.status();
  opening->watch = *watch;
  return absl::OkStatus();
}

void Connector::OnWritable(size_t index) {
  if (has_ended() || openings_[index].watch == 0) return;
  loop()->Unwatch(std::exchange(openings_[index].watch, 0));
  const absl::Status greeted = Greet(index);
  if (!greeted.ok()) return FinishOnLoop(greeted);
  if (++greeted_ < openings_.size()) return;
  std::vector<base::UniqueFd> sockets;
  for (Opening& opening : openings_) {
    sockets.push_back(std::move(opening.socket));
  }
  FinishOnLoop(StripesEndpoint::Create(std::move(sockets)));
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
  // Sends the greeting at once, because a new socket has room for all of it.
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the peer closed a further socket");
  }
  return absl::OkStatus();
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
