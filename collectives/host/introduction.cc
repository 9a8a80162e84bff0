#include "collectives/host/introduction.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/byte_order.h"
#include "transport/base/status_util.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/foreign_fd.h"

namespace penstock::collectives {
namespace {

constexpr uint32_t kMagic = 0x47435350;  // "PSCG"
constexpr size_t kTokenAt = 32;
constexpr size_t kHeaderBytes = kTokenAt + base::kTokenBytes;
constexpr size_t kMaxBytes = kHeaderBytes + kMaxRefusalBytes;
constexpr size_t kDescriptors = 2;

using Kind = Introduction::Kind;

void TakeDescriptors(const msghdr& header, Received* received, size_t* number) {
  const cmsghdr* const part = CMSG_FIRSTHDR(&header);
  if (part == nullptr || part->cmsg_level != SOL_SOCKET ||
      part->cmsg_type != SCM_RIGHTS) {
    return;
  }
  *number = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  progress::ForeignFd* const owners[] = {&received->memory, &received->life};
  for (size_t i = 0; i < std::min(*number, kDescriptors); ++i) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
    *owners[i] = progress::ForeignFd(base::UniqueFd(fd));
  }
}

}  // namespace

std::string Encode(const Introduction& introduction) {
  std::string bytes(kHeaderBytes, '\0');
  auto* const out = reinterpret_cast<uint8_t*>(&bytes[0]);
  base::StoreLittle(kMagic, out);
  base::StoreLittle(Introduction::kVersion, out + 4);
  base::StoreLittle(static_cast<uint16_t>(introduction.kind), out + 6);
  base::StoreLittle(introduction.rank, out + 8);
  base::StoreLittle(introduction.ranks, out + 12);
  base::StoreLittle(introduction.sizes.slot_bytes, out + 16);
  base::StoreLittle(introduction.sizes.pool_bytes, out + 24);
  std::memcpy(out + kTokenAt, introduction.token.data(), base::kTokenBytes);
  return bytes + introduction.text.substr(0, kMaxRefusalBytes);
}

absl::StatusOr<Introduction> DecodeIntroduction(absl::string_view bytes) {
  const auto* const in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (bytes.size() < kHeaderBytes || bytes.size() > kMaxBytes ||
      base::LoadLittle<uint32_t>(in) != kMagic) {
    return absl::InvalidArgumentError("malformed message of a rank");
  }
  const auto version = base::LoadLittle<uint16_t>(in + 4);
  if (version != Introduction::kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("a rank speaks version ", version, " of collectives, not ",
                     Introduction::kVersion));
  }
  const auto kind = base::LoadLittle<uint16_t>(in + 6);
  Introduction introduction;
  introduction.kind = static_cast<Kind>(kind);
  const bool is_refusal = introduction.kind == Kind::kRefusal;
  if (kind < 1 || kind > 3 || (bytes.size() > kHeaderBytes && !is_refusal)) {
    return absl::InvalidArgumentError("malformed message of a rank");
  }
  introduction.rank = base::LoadLittle<uint32_t>(in + 8);
  introduction.ranks = base::LoadLittle<uint32_t>(in + 12);
  introduction.sizes.slot_bytes = base::LoadLittle<uint64_t>(in + 16);
  introduction.sizes.pool_bytes = base::LoadLittle<uint64_t>(in + 24);
  introduction.token = std::string(bytes.substr(kTokenAt, base::kTokenBytes));
  introduction.text = std::string(bytes.substr(kHeaderBytes));
  return introduction;
}

int PollMillis(absl::Time deadline) {
  const absl::Duration left = deadline - base::SteadyNow();
  if (left <= absl::ZeroDuration()) return 0;
  // Rounds up. Otherwise the caller would poll in a busy loop just before the
  // deadline.
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1000));
}

absl::Status Send(int socket, const Introduction& introduction, int memory_fd,
                  int life_fd, absl::Time deadline) {
  std::string bytes = Encode(introduction);
  iovec data = {&bytes[0], bytes.size()};
  const int fds[kDescriptors] = {memory_fd, life_fd};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (memory_fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(part), fds, sizeof fds);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != ETOOMANYREFS) {
      return base::ErrnoStatus(error, "sendmsg to a rank");
    }
    if (base::SteadyNow() >= deadline) {
      return absl::DeadlineExceededError("a rank does not read its members");
    }
    // Waits if too many descriptors are in flight (EAGAIN): other processes
    // first have to receive theirs.
    pollfd writable = {error == EAGAIN ? socket : -1, POLLOUT, 0};
    poll(&writable, 1, error == EAGAIN ? PollMillis(deadline) : 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<Received> Receive(int socket) {
  char bytes[kMaxBytes + 1];
  iovec data = {bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptors * sizeof(int))];
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  do {
    size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return base::ErrnoStatus(errno, "recvmsg from a rank");
  Received received;
  size_t descriptors = 0;
  TakeDescriptors(header, &received, &descriptors);
  if (size == 0) return absl::UnavailableError("a rank hung up");
  auto introduction = DecodeIntroduction({bytes, static_cast<size_t>(size)});
  if (!introduction.ok()) return introduction.status();
  const size_t wanted = introduction->kind == Kind::kRefusal ? 0 : kDescriptors;
  if (descriptors != wanted || (header.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a rank's message has ", descriptors, " descriptors, not ", wanted));
  }
  received.introduction = *std::move(introduction);
  return received;
}

absl::StatusOr<Received> ReceiveUntil(int socket, absl::Time deadline) {
  pollfd readable = {socket, POLLIN, 0};
  while (poll(&readable, 1, PollMillis(deadline)) <= 0) {
    if (base::SteadyNow() >= deadline) {
      return absl::DeadlineExceededError("nothing came from rank 0");
    }
  }
  return Receive(socket);
}

}  // namespace penstock::collectives
