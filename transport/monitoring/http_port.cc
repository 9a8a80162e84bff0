#include "transport/monitoring/http_port.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/unique_fd.h"
#include "transport/monitoring/close_in_child.h"
#include "transport/monitoring/exposition.h"
#include "transport/monitoring/scrapes.h"
#include "transport/progress/acceptor.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace monitoring {
namespace {

absl::Status CannotServe(const HttpAddress& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(
      "cannot serve metrics at ", address.ToString(),
      ": is the port taken, or the address another machine's? (", why, ")"));
}

// Returns the host without the brackets of an IPv6 address.
std::string HostOf(const HttpAddress& address) {
  absl::string_view host = address.host;
  if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

absl::StatusOr<base::UniqueFd> Listen(const HttpAddress& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(HostOf(address).c_str(), absl::StrCat(address.port).c_str(),
                  &hints, &found);
  if (error != 0) return CannotServe(address, gai_strerror(error));
  sockaddr_storage first = {};
  const socklen_t size = found->ai_addrlen;
  std::memcpy(&first, found->ai_addr, size);
  freeaddrinfo(found);
  absl::StatusOr<base::UniqueFd> listening = progress::ListenAt(first, size);
  if (listening.ok()) return listening;
  return CannotServe(address, listening.status().message());
}

}  // namespace

absl::StatusOr<int> ServeHttp(const HttpAddress& address) {
  const absl::StatusOr<progress::EventLoop*> loop =
      progress::EventLoop::GetForMonitoring();
  if (!loop.ok()) return CannotServe(address, loop.status().message());
  absl::StatusOr<base::UniqueFd> listening = Listen(address);
  if (!listening.ok()) return listening.status();
  const int fd = listening->get();
  // Never destroyed, because it may be answering while the process ends.
  auto* const scrapes = new Scrapes(*loop, &MetricsAsText);
  const absl::StatusOr<std::shared_ptr<progress::Acceptor>> acceptor =
      progress::Acceptor::Begin(
          *loop, *std::move(listening),
          {[scrapes](base::UniqueFd socket, const sockaddr_storage& peer) {
             scrapes->Begin(std::move(socket), peer);
           },
           [scrapes] { return scrapes->MakeRoom(); },
           [scrapes] { return scrapes->IsFull(); }});
  if (!acceptor.ok()) {
    delete scrapes;
    return CannotServe(address, acceptor.status().message());
  }
  CloseInChild(fd);
  return (*acceptor)->port();
}

}  // namespace monitoring
}  // namespace penstock
