#include "transport/fabric/shm/setup_message.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/byte_order.h"
#include "transport/base/status_util.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/region_key.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint32_t kMagic = 0x4d485350;  // "PSHM"

// The first message in a socket, copied without removing the message. `fd` is a
// duplicate of the message's descriptor, and belongs to this process.
struct FirstInSocket {
  ssize_t size = 0;  // or -1
  int flags = 0;
  char bytes[kMaxSetupBytes + 1];
  progress::ForeignFd fd;
};

void LookAtFirst(int socket, FirstInSocket* first) {
  iovec data = {first->bytes, sizeof first->bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  // Excludes the padding. With the padding, the kernel would have room for a
  // second descriptor.
  header.msg_controllen = CMSG_LEN(sizeof(int));
  do {
    first->size =
        recvmsg(socket, &header, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (first->size < 0 && errno == EINTR);
  if (first->size < 0) return;
  first->flags = header.msg_flags;
  const cmsghdr* const part = CMSG_FIRSTHDR(&header);
  if (part == nullptr || part->cmsg_level != SOL_SOCKET ||
      part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(sizeof(int))) {
    return;
  }
  int fd;
  std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  first->fd = progress::ForeignFd(base::UniqueFd(fd));
}

// Removes the first message. The kernel closes the message's own descriptors;
// the duplicate in FirstInSocket stays open.
void DropFirst(int socket) {
  char byte;
  while (recv(socket, &byte, sizeof byte, MSG_DONTWAIT) < 0 && errno == EINTR) {
  }
}

absl::Status CheckFirst(const FirstInSocket& first) {
  const bool has_fd = first.fd.valid();
  if (first.size == 0 && !has_fd && (first.flags & MSG_CTRUNC) == 0) {
    return absl::UnavailableError("the peer hung up");
  }
  // Detects that this process had no descriptor left: the control data was
  // truncated, although there was room for the control data of an honest peer.
  if (!has_fd && (first.flags & MSG_CTRUNC) != 0) {
    return absl::ResourceExhaustedError(
        "no descriptor is left for a peer's memory; raise the limit of open "
        "files (ulimit -n)");
  }
  if ((first.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError(
        "the set-up message is too long, or has too many descriptors");
  }
  return absl::OkStatus();
}

// Returns true if `fd` is an eventfd. Reads its name in /proc, which no file
// can have, because names of files begin with a slash. Unlike read(), write(),
// poll() and fstat(), this calls no driver and no foreign file system.
bool IsEventFd(int fd) {
  constexpr absl::string_view kName = "anon_inode:[eventfd]";
  char name[kName.size() + 1];
  const std::string link = absl::StrCat("/proc/thread-self/fd/", fd);
  const ssize_t size = readlink(link.c_str(), name, sizeof name);
  return size >= 0 && absl::string_view(name, size) == kName;
}

// Checks the descriptor of a message of kind `kind`.
absl::Status CheckDescriptor(SetupMessage::Kind kind, int fd) {
  if (kind == SetupMessage::Kind::kDoorbell) {
    return IsEventFd(fd) ? absl::OkStatus()
                         : absl::FailedPreconditionError(
                               "the peer's descriptor is no eventfd");
  }
  // Queries the seals, because other queries may call a driver or a foreign
  // file system.
  return fcntl(fd, F_GET_SEALS) >= 0 ? absl::OkStatus()
                                     : absl::FailedPreconditionError(
                                           "the peer's descriptor is no memfd");
}

bool IsOfSetup(SetupMessage::Kind kind) {
  return kind == SetupMessage::Kind::kHello ||
         kind == SetupMessage::Kind::kWelcome;
}

// Stores the last word of a message. Returns false if a message of that kind
// cannot have this word.
bool TakeLastWord(uint32_t word, SetupMessage* message) {
  switch (message->kind) {
    case SetupMessage::Kind::kHello:
    case SetupMessage::Kind::kWelcome:
      message->copies = word == 1;
      return word <= 1;
    case SetupMessage::Kind::kSegment:
      message->segment_id = word;
      return !IsDeviceId(word);
    case SetupMessage::Kind::kTakeBack:
      message->segment_id = word;
      return true;
    case SetupMessage::Kind::kDoorbell:
      return word == 0;
    case SetupMessage::Kind::kDevice:
    case SetupMessage::Kind::kDeclined:
    case SetupMessage::Kind::kClosed:
      message->segment_id = word;
      return IsDeviceId(word);
  }
  return false;
}

// Stores the size of a message. Returns false if a message of that kind cannot
// have this size.
bool TakeSize(uint64_t size, SetupMessage* message) {
  message->size = size;
  switch (message->kind) {
    case SetupMessage::Kind::kHello:
    case SetupMessage::Kind::kWelcome:
      return IsRingSize(size);
    case SetupMessage::Kind::kSegment:
      return size > 0 && size <= kMaxPeerBytes;
    case SetupMessage::Kind::kDevice:
      return size >= memory::kMinDeviceBytes && size <= kMaxPassedDeviceBytes;
    case SetupMessage::Kind::kTakeBack:
    case SetupMessage::Kind::kDeclined:
    case SetupMessage::Kind::kClosed:
    case SetupMessage::Kind::kDoorbell:
      return size == 0;
  }
  return false;
}

// Stores the token or the handle of a message. Returns false if a message of
// that kind cannot have this text.
bool TakeText(absl::string_view text, SetupMessage* message) {
  switch (message->kind) {
    case SetupMessage::Kind::kHello:
      message->token = std::string(text);
      return text.size() <= kMaxTokenBytes;
    case SetupMessage::Kind::kDevice:
      message->handle = std::string(text);
      return !text.empty() && text.size() <= memory::kMaxDeviceHandleBytes;
    default:
      return text.empty();
  }
}

}  // namespace

absl::Status CheckToken(absl::string_view token) {
  if (!token.empty() && token.size() <= kMaxTokenBytes) return absl::OkStatus();
  return absl::InvalidArgumentError("a token has 1 to 64 bytes");
}

bool RecognizesEventFds() {
  const base::UniqueFd fd(eventfd(0, EFD_CLOEXEC));
  return fd.valid() && IsEventFd(fd.get());
}

bool HasDescriptor(SetupMessage::Kind kind) {
  return IsOfSetup(kind) || kind == SetupMessage::Kind::kSegment ||
         kind == SetupMessage::Kind::kDoorbell;
}

std::string EncodeSetup(const SetupMessage& message) {
  const std::string& text = message.kind == SetupMessage::Kind::kDevice
                                ? message.handle
                                : message.token;
  std::string bytes(kSetupHeaderBytes, '\0');
  auto* out = reinterpret_cast<uint8_t*>(&bytes[0]);
  base::StoreLittle<uint32_t>(kMagic, out);
  base::StoreLittle<uint16_t>(kLayoutVersion, out + 4);
  out[6] = static_cast<uint8_t>(message.kind);
  out[7] = static_cast<uint8_t>(text.size());
  base::StoreLittle<uint64_t>(message.size, out + 8);
  base::StoreLittle<uint32_t>(
      IsOfSetup(message.kind) ? message.copies : message.segment_id, out + 16);
  return bytes + text;
}

absl::StatusOr<SetupMessage> DecodeSetup(absl::string_view bytes) {
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (bytes.size() < kSetupHeaderBytes ||
      base::LoadLittle<uint32_t>(in) != kMagic) {
    return absl::InvalidArgumentError("not a shared memory set-up message");
  }
  const uint16_t version = base::LoadLittle<uint16_t>(in + 4);
  if (version != kLayoutVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer's shared memory has layout ", version,
                     ", this process's ", kLayoutVersion));
  }
  const uint8_t kind = in[6];
  const absl::string_view text = bytes.substr(kSetupHeaderBytes);
  SetupMessage message;
  message.kind = static_cast<SetupMessage::Kind>(kind);
  if (kind < 1 || kind > 8 || text.size() != in[7] ||
      !TakeSize(base::LoadLittle<uint64_t>(in + 8), &message) ||
      !TakeLastWord(base::LoadLittle<uint32_t>(in + 16), &message) ||
      !TakeText(text, &message)) {
    return absl::InvalidArgumentError("malformed shared memory set-up message");
  }
  return message;
}

absl::Status SendSetup(int socket, const SetupMessage& message, int fd) {
  std::string bytes = EncodeSetup(message);
  iovec data = {&bytes[0], bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  // A packet is sent as a whole or not at all.
  if (sent >= 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == ETOOMANYREFS) {
    return absl::ResourceExhaustedError(
        "the shared memory set-up socket is full");
  }
  return base::ErrnoStatus(errno, "sendmsg of a memfd");
}

absl::StatusOr<ReceivedSetup> ReceiveSetup(int socket) {
  FirstInSocket first;
  LookAtFirst(socket, &first);
  if (first.size < 0 && errno == EAGAIN) {
    return absl::NotFoundError("no message");
  }
  if (first.size < 0) return base::ErrnoStatus(errno, "recvmsg of a memfd");
  absl::Status good = CheckFirst(first);
  if (!good.ok()) return good;
  absl::StatusOr<SetupMessage> message =
      DecodeSetup({first.bytes, static_cast<size_t>(first.size)});
  if (!message.ok()) return message.status();
  if (first.fd.valid() != HasDescriptor(message->kind)) {
    return absl::InvalidArgumentError(
        "the set-up message does not have exactly its one descriptor");
  }
  if (first.fd.valid()) {
    absl::Status checked = CheckDescriptor(message->kind, first.fd.get());
    if (!checked.ok()) return checked;
  }
  DropFirst(socket);
  return ReceivedSetup{*std::move(message), std::move(first.fd)};
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
