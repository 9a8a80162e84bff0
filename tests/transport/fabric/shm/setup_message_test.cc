#include "transport/fabric/shm/setup_message.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

SetupMessage Hello() {
  SetupMessage hello;
  hello.kind = SetupMessage::Kind::kHello;
  hello.size = 0x00080000;
  hello.copies = true;
  hello.token = "token";
  return hello;
}

struct SocketPair {
  SocketPair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         0, fds),
              0);
    a.Reset(fds[0]);
    b.Reset(fds[1]);
  }
  base::UniqueFd a;
  base::UniqueFd b;
};

// Prevents the process from getting descriptors during its lifetime.
class NoDescriptors {
 public:
  explicit NoDescriptors(int any_fd) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = dup(any_fd);  // the lowest free number
    close(next);
    const rlimit none = {static_cast<rlim_t>(next), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_;
};

// Sends as a hostile peer does, with `count` copies of descriptor 0.
void SendRaw(int socket, const std::string& bytes, size_t count) {
  iovec data = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memset(CMSG_DATA(part), 0, count * sizeof(int));
  }
  ASSERT_GE(sendmsg(socket, &header, 0), 0);
}

TEST(SetupMessage, HasTheseBytes) {
  const std::string expected(
      "PSHM\x05\x00\x01\x05\x00\x00\x08\x00\x00\x00\x00\x00\x01\x00\x00\x00"
      "token",
      25);
  EXPECT_EQ(EncodeSetup(Hello()), expected);
}

TEST(SetupMessage, DecodesWhatWasEncoded) {
  auto decoded = DecodeSetup(EncodeSetup(Hello()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->kind, SetupMessage::Kind::kHello);
  EXPECT_EQ(decoded->size, Hello().size);
  EXPECT_TRUE(decoded->copies);
  EXPECT_EQ(decoded->token, "token");
}

TEST(SetupMessage, SegmentHasAnId) {
  SetupMessage message;
  message.kind = SetupMessage::Kind::kSegment;
  message.segment_id = 0x01020304;
  message.size = 0x01020304;
  auto decoded = DecodeSetup(EncodeSetup(message));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->segment_id, 0x01020304u);
  EXPECT_FALSE(decoded->copies);
}

TEST(SetupMessage, AnythingElseIsRejected) {
  const std::string good = EncodeSetup(Hello());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeSetup(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeSetup(good + "x").ok());
  for (auto change : {std::make_pair(0, 'Q'), std::make_pair(4, '\x01'),
                      std::make_pair(6, '\x00'), std::make_pair(6, '\x05'),
                      std::make_pair(6, '\x04'), std::make_pair(6, '\x02'),
                      std::make_pair(7, '\x04'), std::make_pair(7, '\xff'),
                      std::make_pair(16, '\x02'), std::make_pair(19, '\x01')}) {
    std::string bad = good;
    bad[change.first] = change.second;
    EXPECT_FALSE(DecodeSetup(bad).ok()) << change.first;
  }
}

TEST(SetupMessage, ASizeIsWithinTheLimitsOfItsKind) {
  using Kind = SetupMessage::Kind;
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  struct {
    Kind kind;
    std::vector<uint64_t> good;
    std::vector<uint64_t> bad;
  } const cases[] = {
      {Kind::kHello, {128 << 10, 1 << 20}, {0, 4096, 192 << 10, 2 << 20}},
      {Kind::kWelcome, {128 << 10, 1 << 20}, {0, 4096, 192 << 10, 2 << 20}},
      {Kind::kSegment, {1, kMaxPeerBytes}, {0, kMaxPeerBytes + 1}},
      {Kind::kDevice,
       {memory::kMinDeviceBytes, kMaxPassedDeviceBytes},
       {0, memory::kMinDeviceBytes - 1, kMaxPassedDeviceBytes + 1}},
      {Kind::kTakeBack, {0}, {1}},
      {Kind::kDeclined, {0}, {1}},
      {Kind::kClosed, {0}, {1}},
      {Kind::kDoorbell, {0}, {1}},
  };
  for (const auto& each : cases) {
    SetupMessage message;
    message.kind = each.kind;
    message.segment_id = each.kind == Kind::kSegment ? 1 : kDeviceBit;
    if (each.kind == Kind::kDoorbell) message.segment_id = 0;
    if (each.kind == Kind::kDevice) message.handle = "handle";
    for (const uint64_t size : each.good) {
      message.size = size;
      const auto decoded = DecodeSetup(EncodeSetup(message));
      ASSERT_TRUE(decoded.ok()) << static_cast<int>(each.kind) << ' ' << size;
      EXPECT_EQ(decoded->size, size);
    }
    std::vector<uint64_t> bad = each.bad;
    bad.push_back(kMost);
    for (const uint64_t size : bad) {
      message.size = size;
      EXPECT_FALSE(DecodeSetup(EncodeSetup(message)).ok())
          << static_cast<int>(each.kind) << ' ' << size;
    }
  }
}

TEST(SetupMessage, CarriesADescriptor) {
  SocketPair sockets;
  auto segment = Segment::Create("test", 4096);
  ASSERT_TRUE(SendSetup(sockets.a.get(), Hello(), segment->fd()).ok());
  auto received = ReceiveSetup(sockets.b.get());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->message.token, "token");
  EXPECT_TRUE(fcntl(received->fd.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(SetupMessage, NoDescriptorLeftIsSaidWithTheRemedy) {
  SocketPair sockets;
  auto segment = Segment::Create("test", 4096);
  ASSERT_TRUE(SendSetup(sockets.a.get(), Hello(), segment->fd()).ok());
  absl::Status status;
  {
    NoDescriptors none(segment->fd());
    status = ReceiveSetup(sockets.b.get()).status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("ulimit -n"), absl::string_view::npos);
}

TEST(SetupMessage, NothingThereAndHungUpAreToldApart) {
  SocketPair sockets;
  EXPECT_TRUE(absl::IsNotFound(ReceiveSetup(sockets.b.get()).status()));
  sockets.a.Reset();
  EXPECT_TRUE(absl::IsUnavailable(ReceiveSetup(sockets.b.get()).status()));
  EXPECT_FALSE(SendSetup(sockets.b.get(), Hello(), 0).ok());
}

TEST(SetupMessage, FullSocketIsResourceExhausted) {
  SocketPair sockets;
  absl::Status sent;
  for (int i = 0; i < 10000 && sent.ok(); ++i) {
    sent = SendSetup(sockets.a.get(), Hello(), 0);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(sent)) << sent;
}

TEST(SetupMessage, AnyOtherNumberOfDescriptorsIsRejectedAndNoneIsKept) {
  SocketPair sockets;
  const size_t before = CountFds();
  for (size_t count : {0, 2, 3, 8, 20, 253}) {
    SendRaw(sockets.a.get(), EncodeSetup(Hello()), count);
    EXPECT_FALSE(ReceiveSetup(sockets.b.get()).ok()) << count;
    sockets = SocketPair();
  }
  SendRaw(sockets.a.get(), std::string(1000, 'x'), 1);
  EXPECT_FALSE(ReceiveSetup(sockets.b.get()).ok());
  sockets = SocketPair();
  EXPECT_TRUE(WaitUntil([before] { return CountFds() <= before; }));
}

TEST(SetupMessage, DescriptorOfAnythingButSharedMemoryIsRejected) {
  SocketPair sockets;
  // Passes an arbitrary descriptor, such as that of /dev/null.
  SendRaw(sockets.a.get(), EncodeSetup(Hello()), 1);
  const absl::Status status = ReceiveSetup(sockets.b.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST(SetupMessage, DoorbellIsAnEventFd) {
  SetupMessage doorbell;
  doorbell.kind = SetupMessage::Kind::kDoorbell;
  SocketPair sockets;
  const base::UniqueFd fd(eventfd(1, EFD_CLOEXEC));
  ASSERT_TRUE(SendSetup(sockets.a.get(), doorbell, fd.get()).ok());
  auto received = ReceiveSetup(sockets.b.get());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->message.kind, SetupMessage::Kind::kDoorbell);
  EXPECT_TRUE(received->fd.valid());

  auto segment = Segment::Create("anon_inode:[eventfd]", 4096);
  ASSERT_TRUE(SendSetup(sockets.a.get(), doorbell, segment->fd()).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReceiveSetup(sockets.b.get()).status()));
}

TEST(SetupMessage, EventFdIsNoSharedMemory) {
  SocketPair sockets;
  const base::UniqueFd fd(eventfd(1, EFD_CLOEXEC));
  ASSERT_TRUE(SendSetup(sockets.a.get(), Hello(), fd.get()).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReceiveSetup(sockets.b.get()).status()));
}

TEST(SetupMessage, WhatWasRefusedForWantOfADescriptorIsReceivedLater) {
  SocketPair sockets;
  auto segment = Segment::Create("test", 4096);
  ASSERT_TRUE(SendSetup(sockets.a.get(), Hello(), segment->fd()).ok());
  ASSERT_TRUE(SendSetup(sockets.a.get(), Hello(), segment->fd()).ok());
  {
    NoDescriptors none(segment->fd());
    EXPECT_FALSE(ReceiveSetup(sockets.b.get()).ok());
  }
  EXPECT_TRUE(ReceiveSetup(sockets.b.get()).ok());
  EXPECT_TRUE(ReceiveSetup(sockets.b.get()).ok());
  EXPECT_TRUE(absl::IsNotFound(ReceiveSetup(sockets.b.get()).status()));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
