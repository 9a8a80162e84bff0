#include "transport/fabric/shm/address.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/host_id.h"
#include "transport/base/status_util.h"
#include "transport/base/token.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kPrefix[] = "penstock-";
constexpr size_t kNameBytes = sizeof kPrefix - 1 + 2 * base::kTokenBytes;
// Connections that wait for accept(); more are refused to the peer at once.
constexpr int kBacklog = 64;

struct Address {
  sockaddr_un name;
  socklen_t size;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&name);
  }
};

// Needs name.size() == kNameBytes.
Address AbstractAddress(absl::string_view name) {
  Address address = {};
  address.name.sun_family = AF_UNIX;
  // A name that begins with a zero byte lives in no file system.
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<base::UniqueFd> NewSocket() {
  base::UniqueFd fd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket(AF_UNIX)");
  return fd;
}

absl::Status ConnectError(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:
      return absl::UnavailableError(
          "no such socket here: the peer is in another network namespace or "
          "gone");
    case EAGAIN:
      return absl::UnavailableError(
          "the peer's shared memory socket has too many callers");
    default:
      return base::ErrnoStatus(error, "connect to the peer's UNIX socket");
  }
}

}  // namespace

absl::StatusOr<std::string> NewSocketName() {
  absl::StatusOr<std::string> random = base::NewToken();
  if (!random.ok()) return random.status();
  return absl::StrCat(kPrefix, absl::BytesToHexString(*random));
}

absl::StatusOr<base::UniqueFd> ListenAt(absl::string_view name) {
  absl::StatusOr<base::UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  const Address address = AbstractAddress(name);
  if (bind(fd->get(), address.get(), address.size) != 0) {
    return base::ErrnoStatus(errno, "bind of an abstract UNIX socket");
  }
  if (listen(fd->get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, "listen at an abstract UNIX socket");
  }
  return fd;
}

absl::StatusOr<base::UniqueFd> ConnectTo(absl::string_view name) {
  absl::StatusOr<base::UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  const Address address = AbstractAddress(name);
  if (connect(fd->get(), address.get(), address.size) != 0) {
    return ConnectError(errno);
  }
  return fd;
}

absl::StatusOr<std::string> MakeOffer(absl::string_view name) {
  if (base::HostId().empty()) {
    return absl::UnavailableError(
        "/proc/sys/kernel/random/boot_id cannot be read: peers could not tell "
        "whether they are on this host");
  }
  return absl::StrCat(base::HostId(), "\n", name);
}

absl::StatusOr<std::string> SocketNameIn(absl::string_view offer) {
  const size_t newline = offer.find('\n');
  if (newline == absl::string_view::npos) {
    return absl::InvalidArgumentError("malformed offer of shared memory");
  }
  const absl::string_view host = offer.substr(0, newline);
  if (host.empty() || host != base::HostId()) {
    return absl::UnavailableError("peer is on another host");
  }
  const absl::string_view name = offer.substr(newline + 1);
  if (!absl::StartsWith(name, kPrefix) || name.size() != kNameBytes) {
    return absl::InvalidArgumentError("malformed offer of shared memory");
  }
  return std::string(name);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
