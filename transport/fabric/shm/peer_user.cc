#include "transport/fabric/shm/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The number of valid uids: all 32-bit numbers but the last.
constexpr uint64_t kAllUids = 0xffffffff;
constexpr uid_t kUsualOverflowUid = 65534;

// Returns the kernel's substitute for a user without a number in this process's
// namespace.
uid_t OverflowUid() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t uid = 0;
  return file >> uid ? uid : kUsualOverflowUid;
}

// Returns true in the initial user namespace. There the overflow uid belongs to
// a real user, Debian's "nobody".
bool EveryUserHasANumber() {
  std::ifstream file("/proc/self/uid_map");
  uint64_t mapped = 0;
  for (uint64_t inside, outside, count; file >> inside >> outside >> count;) {
    mapped += count;
  }
  return mapped >= kAllUids;
}

}  // namespace

absl::StatusOr<PeerUser> IdentifyPeer(int socket) {
  ucred credentials;
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return base::ErrnoStatus(errno, "SO_PEERCRED");
  }
  PeerUser peer;
  peer.uid = credentials.uid;
  peer.is_other = peer.uid != geteuid();
  if (peer.uid != OverflowUid() || EveryUserHasANumber()) return peer;
  return absl::PermissionDeniedError(absl::StrCat(
      "the peer's user has no number in this process's user namespace (it "
      "shows as uid ",
      peer.uid,
      "), so it cannot be distinguished from others: map it there "
      "(/proc/PID/uid_map), "
      "or run both in one user namespace"));
}

absl::Status RefuseOtherUser(const PeerUser& peer) {
  return absl::PermissionDeniedError(absl::StrCat(
      "peer runs as uid ", peer.uid, ", this process as uid ", geteuid(),
      ": with security that promises privacy, memory is shared between "
      "processes of one uid only; run both as one"));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
