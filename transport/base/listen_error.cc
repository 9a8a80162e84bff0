#include "transport/base/listen_error.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

constexpr size_t kMaxNameBytes = 255;
// The lowest port that needs no privilege.
constexpr int kFirstFreePort = 1024;

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Returns 0, or the error of bind() or listen().
int TryAddress(const addrinfo& address) {
  const UniqueFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  // Sets SO_REUSEADDR, as servers do. Otherwise lingering connections of an
  // earlier server would cause an error.
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return errno;
  return listen(fd.get(), /*backlog=*/1) == 0 ? 0 : errno;
}

std::string MeaningOf(int error, int port) {
  switch (error) {
    case EADDRINUSE:
      return "the port is in use (see: ss -ltnp)";
    case EACCES:
    case EPERM:
      return port < kFirstFreePort
                 ? "no permission: ports below 1024 need root or "
                   "CAP_NET_BIND_SERVICE"
                 : "no permission";
    case EADDRNOTAVAIL:
      return "the address is none of this machine's (see: ip address)";
    case EAFNOSUPPORT:
      return "this machine has no addresses of that kind (is IPv6 off?)";
    default:
      return std::system_category().message(error);
  }
}

std::string UnknownName(const std::string& host, int code) {
  return absl::StrCat("the name \"", Printable(host, kMaxNameBytes),
                      "\" is unknown: ", gai_strerror(code));
}

}  // namespace

std::string WhyCannotListen(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) return UnknownName(host, code);
  const Addresses owner(list, freeaddrinfo);
  int first_error = 0;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const int error = TryAddress(*each);
    if (error == 0) return "";
    if (first_error == 0) first_error = error;
  }
  return MeaningOf(first_error, port);
}

std::string WhyCannotListen(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return "";
  }
  absl::string_view host(address);
  host = host.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return WhyCannotListen(std::string(host), port);
}

}  // namespace base
}  // namespace penstock
