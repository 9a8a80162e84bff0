#include "tests/fuzz/liar_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace fuzz {
namespace {

int MakeUnsealed() {
  const int fd = memfd_create("penstock-fuzz", MFD_CLOEXEC);
  Require(fd >= 0 && ftruncate(fd, LiarSocket::kRingBytes) == 0,
          "there is memory");
  return fd;
}

// Makes the memory only once, because a peer may pass the same memory
// repeatedly.
int Control() {
  static const fabric::shm::Segment& segment = *new fabric::shm::Segment(
      fabric::shm::CreateControl(LiarSocket::kRingBytes).value());
  return segment.fd();
}

int Small() {
  static const fabric::shm::Segment& segment = *new fabric::shm::Segment(
      fabric::shm::Segment::Create("penstock-fuzz", 4096).value());
  return segment.fd();
}

}  // namespace

int LiarSocket::AnyMemory(Input* input) {
  static const int unsealed = MakeUnsealed();
  static const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  switch (static_cast<Descriptor>(input->Number<uint8_t>() % kDescriptors)) {
    case kNothing:
    case kDescriptors:
      return -1;
    case kControl:
      return Control();
    case kSmall:
      return Small();
    case kUnsealed:
      return unsealed;
    case kEvent:
      return event;
  }
  return -1;
}

LiarSocket LiarSocket::Connect(const fabric::shm::SocketAddress& address) {
  absl::StatusOr<base::UniqueFd> fd = fabric::shm::ConnectTo(address);
  return LiarSocket(fd.ok() ? *std::move(fd) : base::UniqueFd());
}

LiarSocket LiarSocket::Accept(const base::UniqueFd& listening) {
  pollfd ready = {listening.get(), POLLIN, 0};
  if (poll(&ready, 1, /*timeout=*/5) != 1) return LiarSocket(base::UniqueFd());
  return LiarSocket(
      base::UniqueFd(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

void LiarSocket::Send(const std::string& bytes, int descriptor) {
  if (!valid()) return;
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  (void)sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace fuzz
}  // namespace penstock
