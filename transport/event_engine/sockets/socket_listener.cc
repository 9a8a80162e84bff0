#include "transport/event_engine/sockets/socket_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "transport/base/limited_log.h"
#include "transport/base/status_util.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/event_engine/sockets/socket_endpoint.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

// The same number as in gRPC. The system's limit may be smaller.
constexpr int kBacklog = 4096;

// Returns [::] with a port.
EventEngine::ResolvedAddress WildcardOfBoth(int port) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

EventEngine::ResolvedAddress WithPort(
    const EventEngine::ResolvedAddress& address, int port) {
  sockaddr_storage copy = {};
  std::memcpy(&copy, address.address(), address.size());
  // Sets the port, which is at the same position in both address families.
  reinterpret_cast<sockaddr_in*>(&copy)->sin_port =
      htons(static_cast<uint16_t>(port));
  return {reinterpret_cast<const sockaddr*>(&copy), address.size()};
}

absl::StatusOr<base::UniqueFd> Listen(
    const EventEngine::ResolvedAddress& address, bool reuses_port) {
  const int family = address.address()->sa_family;
  base::UniqueFd fd(
      socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket");
  const int on = 1, off = 0;
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (reuses_port) {
    (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  if (family == AF_INET6) {
    (void)setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd.get(), address.address(), address.size()) != 0) {
    return base::ErrnoStatus(errno, "bind");
  }
  if (listen(fd.get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, "listen");
  }
  return fd;
}

bool IsWildcard(const EventEngine::ResolvedAddress& address) {
  const auto tcp = TcpAddress::Of(address.address(), address.size());
  return tcp.has_value() && tcp->IsWildcard();
}

}  // namespace

SocketListener::SocketListener(const SocketOptions& options, Crew* crew,
                               std::shared_ptr<MemoryAllocatorFactory> memory,
                               Accept accept)
    : options_(options),
      crew_(crew),
      memory_(std::move(memory)),
      accept_(std::move(accept)) {}

SocketListener::~SocketListener() {
  for (const Listening& each : listening_) {
    // Stops listening now, so that another server at the same port gets all
    // further clients. The loop closes the socket only later.
    shutdown(each.fd, SHUT_RDWR);
    each.acceptor->Stop();
  }
}

absl::StatusOr<int> SocketListener::Bind(
    const EventEngine::ResolvedAddress& address) {
  EventEngine::ResolvedAddress at = address;
  const int asked = TcpAddress::Of(at.address(), at.size())->port;
  const int port = asked == 0 ? port_ : asked;
  absl::StatusOr<base::UniqueFd> fd = absl::UnavailableError("not tried");
  if (IsWildcard(address))
    fd = Listen(WildcardOfBoth(port), options_.reuses_port);
  if (!fd.ok()) fd = Listen(WithPort(address, port), options_.reuses_port);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<int> bound = progress::PortOf(fd->get());
  if (!bound.ok()) return bound;
  if (port_ == 0) port_ = *bound;
  bound_.push_back(*std::move(fd));
  return bound;
}

absl::Status SocketListener::Start() {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  progress::Acceptor::Callbacks callbacks;
  callbacks.make_room = [] { return false; };
  // Makes the endpoints on the crew's threads, because they also do the next
  // steps: TLS, and the search for a path.
  callbacks.accepted = [options = options_, crew = crew_, memory = memory_,
                        accept = accept_](base::UniqueFd fd,
                                          const sockaddr_storage&) {
    auto socket = std::make_shared<base::UniqueFd>(std::move(fd));
    crew->Run([options, crew, memory, accept, socket] {
      options.ApplyTo(socket->get());
      auto endpoint = SocketEndpoint::Create(std::move(*socket), crew);
      if (absl::IsUnavailable(endpoint.status())) return;  // the client is gone
      if (!endpoint.ok()) {
        return base::WarnOfStranger(endpoint.status().message());
      }
      accept(*std::move(endpoint), memory->CreateMemoryAllocator("penstock"));
    });
  };
  for (base::UniqueFd& fd : bound_) {
    const int number = fd.get();
    auto acceptor = progress::Acceptor::Begin(*loop, std::move(fd), callbacks);
    if (!acceptor.ok()) return acceptor.status();
    listening_.push_back({number, *std::move(acceptor)});
  }
  bound_.clear();
  return absl::OkStatus();
}

}  // namespace event_engine
}  // namespace penstock
