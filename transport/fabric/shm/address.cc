#include "transport/fabric/shm/address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "transport/base/host_id.h"
#include "transport/base/status_util.h"
#include "transport/base/token.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/socket_file.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kPrefix[] = "penstock-";
constexpr size_t kNameBytes = sizeof kPrefix - 1 + 2 * base::kTokenBytes;
// Limits the connections that wait for accept(). The kernel refuses more.
constexpr int kBacklog = 64;
static_assert(kMaxDirectoryBytes + 1 + kNameBytes <
                  sizeof(sockaddr_un::sun_path),
              "a path ends with a zero byte");
// The mode of a socket's file, which admits every user. The mode of the
// directory limits access.
constexpr mode_t kSocketMode = 0666;
constexpr char kOtherNamespace[] =
    "the peer is on this host, but in another network namespace, where an "
    "abstract socket cannot be reached; set PENSTOCK_SHM_DIRECTORY on both "
    "sides to a directory that both see";

struct NativeAddress {
  sockaddr_un name;
  socklen_t size;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&name);
  }
};

absl::StatusOr<NativeAddress> ToNative(const SocketAddress& address) {
  NativeAddress native = {};
  native.name.sun_family = AF_UNIX;
  char* const path = native.name.sun_path;
  if (address.directory.empty()) {
    // Makes the name abstract, that is, not in a file system: it begins with a
    // zero byte.
    std::memcpy(path + 1, address.name.data(), kNameBytes);
    native.size = offsetof(sockaddr_un, sun_path) + 1 + kNameBytes;
    return native;
  }
  if (address.directory.size() > kMaxDirectoryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("PENSTOCK_SHM_DIRECTORY=", address.directory,
                     " is longer than ", kMaxDirectoryBytes, " bytes"));
  }
  const std::string text = PathOf(address);
  std::memcpy(path, text.data(), text.size());
  native.size = sizeof native.name;
  return native;
}

absl::StatusOr<base::UniqueFd> NewSocket() {
  base::UniqueFd fd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket(AF_UNIX)");
  return fd;
}

absl::Status NoSuchSocket(const SocketAddress& address) {
  if (address.directory.empty()) {
    return absl::UnavailableError("no such socket here: the peer is gone");
  }
  return absl::UnavailableError(absl::StrCat(
      "no such socket in PENSTOCK_SHM_DIRECTORY=", address.directory,
      ": it is not the directory where the peer listens, or the peer is gone"));
}

absl::Status ConnectError(int error, const SocketAddress& address) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:
      return NoSuchSocket(address);
    case EAGAIN:
      return absl::ResourceExhaustedError(
          "the peer's shared memory socket has too many callers");
    default:
      return base::ErrnoStatus(error, "connect to the peer's UNIX socket");
  }
}

// Returns the network namespace of the calling thread, as "net:[4026531840]".
// Returns "" if it cannot be read.
std::string NetworkNamespace() {
  char text[64];
  const ssize_t size = readlink("/proc/thread-self/ns/net", text, sizeof text);
  return size > 0 ? std::string(text, size) : std::string();
}

absl::Status MalformedOffer() {
  return absl::InvalidArgumentError("malformed offer of shared memory");
}

}  // namespace

absl::StatusOr<std::string> NewSocketName() {
  absl::StatusOr<std::string> random = base::NewToken();
  if (!random.ok()) return random.status();
  return absl::StrCat(kPrefix, absl::BytesToHexString(*random));
}

bool IsSocketName(absl::string_view text) {
  if (text.size() != kNameBytes || !absl::StartsWith(text, kPrefix)) {
    return false;
  }
  for (char c : text.substr(sizeof kPrefix - 1)) {
    if (!absl::ascii_isxdigit(c)) return false;
  }
  return true;
}

std::string PathOf(const SocketAddress& address) {
  return absl::StrCat(address.directory, "/", address.name);
}

absl::StatusOr<base::UniqueFd> ListenAt(const SocketAddress& address) {
  absl::StatusOr<base::UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  absl::StatusOr<NativeAddress> native = ToNative(address);
  if (!native.ok()) return native.status();
  const std::string what =
      address.directory.empty() ? "an abstract UNIX socket" : PathOf(address);
  if (bind(fd->get(), native->get(), native->size) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat("bind of ", what));
  }
  if (!address.directory.empty()) {
    RemoveAtExit(PathOf(address));
    if (chmod(PathOf(address).c_str(), kSocketMode) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat("chmod of ", what));
    }
  }
  if (listen(fd->get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat("listen at ", what));
  }
  return fd;
}

absl::StatusOr<base::UniqueFd> ConnectTo(const SocketAddress& address) {
  absl::StatusOr<base::UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  absl::StatusOr<NativeAddress> native = ToNative(address);
  if (!native.ok()) return native.status();
  if (connect(fd->get(), native->get(), native->size) != 0) {
    return ConnectError(errno, address);
  }
  return fd;
}

bool IsDead(const SocketAddress& address) {
  absl::StatusOr<base::UniqueFd> fd = NewSocket();
  absl::StatusOr<NativeAddress> native = ToNative(address);
  if (!fd.ok() || !native.ok()) return false;
  if (connect(fd->get(), native->get(), native->size) != 0) {
    return errno == ECONNREFUSED;
  }
  // Closes the connection as a PeerSocket, that is, on another thread. Closing
  // may block, because the listener may have sent descriptors.
  const PeerSocket connected(*std::move(fd));
  return false;
}

absl::StatusOr<std::string> MakeOffer(const SocketAddress& address) {
  if (base::HostId().empty()) {
    return absl::UnavailableError(
        "/proc/sys/kernel/random/boot_id cannot be read: peers could not tell "
        "whether they are on this host");
  }
  return absl::StrCat(
      base::HostId(), "\n", address.name, "\n",
      address.directory.empty() ? NetworkNamespace() : address.directory);
}

absl::StatusOr<SocketAddress> AddressIn(absl::string_view offer,
                                        const std::string& directory) {
  const std::vector<absl::string_view> lines = absl::StrSplit(offer, '\n');
  if (lines.size() < 2) return MalformedOffer();
  if (lines[0].empty() || lines[0] != base::HostId()) {
    return absl::UnavailableError("peer is on another host");
  }
  if (lines.size() != 3 || !IsSocketName(lines[1])) return MalformedOffer();
  SocketAddress address;
  address.name = std::string(lines[1]);
  if (absl::StartsWith(lines[2], "/")) {
    if (directory.empty()) {
      return absl::UnavailableError(absl::StrCat(
          "the peer listens in its directory ", lines[2],
          "; set PENSTOCK_SHM_DIRECTORY here to the name of that directory"));
    }
    address.directory = directory;
  } else if (lines[2] != NetworkNamespace()) {
    return absl::UnavailableError(kOtherNamespace);
  }
  return address;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
