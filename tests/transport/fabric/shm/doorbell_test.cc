// Tests how often doorbells ring, and wrong descriptors that a peer may pass as
// a doorbell.

#include "transport/fabric/shm/doorbell.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Sends to an armed peer. Returns true if the lifeline must ring.
bool SendAndRing(Endpoint* from) {
  EXPECT_TRUE(Send(from, "x"));
  return from->TakeDoorbellRequest();
}

class ShmDoorbell : public ::testing::Test {
 protected:
  // Connects two ends that have each other's doorbells. `a` sleeps.
  void SetUp() override {
    pair_ = MakePair(&fabric_, &fabric_);
    ASSERT_NE(pair_, nullptr);
    ASSERT_TRUE(WaitUntil([this] {
      a()->Poll();  // otherwise a slow set-up fills the ring
      a()->SetArmed(true);
      return !SendAndRing(b());
    }));
    ASSERT_EQ(a()->wakeup_fds().size(), 1u);
  }
  Endpoint* a() { return pair_->listening.endpoint.get(); }
  Endpoint* b() { return pair_->connecting.endpoint.get(); }

  ShmFabric fabric_;
  std::unique_ptr<Pair> pair_;
};

TEST_F(ShmDoorbell, RingsOnceForEachArming) {
  a()->SetArmed(true);
  SleepingEnd asleep(a());
  EXPECT_FALSE(SendAndRing(b()));
  EXPECT_TRUE(asleep.TakeRing());
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(SendAndRing(b()));
  EXPECT_FALSE(asleep.TakeRing());
  a()->SetArmed(true);
  EXPECT_FALSE(SendAndRing(b()));
  EXPECT_TRUE(asleep.TakeRing());
}

TEST_F(ShmDoorbell, RingsAgainAfterTheWakeUp) {
  a()->SetArmed(true);
  SleepingEnd asleep(a());
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(SendAndRing(b()));
    EXPECT_TRUE(asleep.TakeRing()) << i;
    a()->ClearWakeup();
  }
}

TEST_F(ShmDoorbell, DoesNotRingForAPeerThatPolls) {
  a()->SetArmed(false);
  SleepingEnd asleep(a());
  EXPECT_FALSE(SendAndRing(b()));
  a()->ClearWakeup();  // after an earlier ring
  EXPECT_FALSE(SendAndRing(b()));
  EXPECT_FALSE(asleep.TakeRing());
}

TEST_F(ShmDoorbell, OnlyTheFirstPacketOfAnArmingWakes) {
  a()->SetArmed(false);
  EXPECT_FALSE(b()->SendWakesPeer());
  a()->SetArmed(true);
  EXPECT_TRUE(b()->SendWakesPeer());
  EXPECT_FALSE(SendAndRing(b()));
  EXPECT_FALSE(b()->SendWakesPeer());
  a()->ClearWakeup();
  EXPECT_TRUE(b()->SendWakesPeer());
}

TEST_F(ShmDoorbell, PeersThatCopyHaveNone) {
  Options options;
  options.always_copy = true;
  ShmFabric copies(options);
  pair_ = MakePair(&fabric_, &copies);
  ASSERT_NE(pair_, nullptr);
  for (Endpoint* end : {a(), b()}) EXPECT_TRUE(end->wakeup_fds().empty());
  a()->SetArmed(true);
  EXPECT_TRUE(SendAndRing(b()));
  EXPECT_TRUE(SendAndRing(b()));
}

TEST_F(ShmDoorbell, PeersThatCopyMayAskForThem) {
  Options options;
  options.copies_with_doorbells = true;
  ShmFabric asks(options);
  options.always_copy = true;
  ShmFabric copies(options);
  pair_ = MakePair(&asks, &copies);
  ASSERT_NE(pair_, nullptr);
  EXPECT_FALSE(a()->capabilities().can_load);
  EXPECT_EQ(a()->wakeup_fds().size(), 1u);
  EXPECT_EQ(b()->wakeup_fds().size(), 1u);
}

// Hides /proc from this process. Returns false if that is not allowed.
bool HideProc() {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return false;
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
}

// Tests a process that cannot check doorbells. The peer must not send a
// doorbell to it. The doorbell would stay in the set-up socket and block the
// segments after it.
TEST(ShmWithoutProc, LifelinesRing) {
  ForkedChild probe([] { EXPECT_TRUE(HideProc()); });
  if (!probe.Join()) GTEST_SKIP() << "may not mount here";
  ForkedChild child([] {
    ASSERT_TRUE(HideProc());
    ShmFabric fabric;
    const std::unique_ptr<Pair> pair = MakePair(&fabric, &fabric);
    ASSERT_NE(pair, nullptr);
    Endpoint* const end = pair->listening.endpoint.get();
    EXPECT_TRUE(end->wakeup_fds().empty());
    end->SetArmed(true);
    EXPECT_TRUE(SendAndRing(pair->connecting.endpoint.get()));
  });
  EXPECT_TRUE(child.Join());
}

TEST(ShmFewDescriptors, DoorbellsLeaveThemToPaths) {
  ShmFabric fabric;
  ASSERT_NE(MakePair(&fabric, &fabric), nullptr);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // Leaves enough descriptors for a path, but not for a doorbell.
  const rlimit few = {512, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::unique_ptr<Pair> pair = MakePair(&fabric, &fabric);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_NE(pair, nullptr);
  Endpoint* const end = pair->listening.endpoint.get();
  EXPECT_TRUE(end->wakeup_fds().empty());
  pair->connecting.endpoint->SetArmed(true);
  EXPECT_TRUE(SendAndRing(end));
}

// A fixture in which the test is the peer.
class ShmHostileDoorbell : public ::testing::Test {
 protected:
  void Connect(uint32_t features) {
    pair_ = MakeRawPair(&fabric_, features);
    ASSERT_NE(pair_, nullptr);
  }
  // Passes `fd` as the peer's doorbell. Returns when the end has received the
  // descriptor.
  void Pass(int fd) {
    SetupMessage message;
    message.kind = SetupMessage::Kind::kDoorbell;
    ASSERT_TRUE(SendSetup(pair_->socket.get(), message, fd).ok());
    // Runs two rounds of the loop. In the first round, the loop may have looked
    // for messages before this message arrived.
    for (int turn = 0; turn < 2; ++turn) {
      std::atomic<bool> ran{false};
      progress::EventLoop::Get().value()->Post([&ran] { ran = true; });
      ASSERT_TRUE(WaitUntil([&ran] { return ran.load(); }));
    }
  }
  Endpoint* end() { return pair_->end.endpoint.get(); }
  // Returns true if the lifeline must ring.
  bool Ring() {
    PageOf(*pair_->control)->armed.store(++armed_);
    return SendAndRing(end());
  }

  ShmFabric fabric_;
  std::unique_ptr<RawPair> pair_;
  uint32_t armed_ = 0;
};

TEST_F(ShmHostileDoorbell, PeerFromBeforeDoorbellsGetsNone) {
  Connect(0);
  EXPECT_TRUE(end()->wakeup_fds().empty());
  // Writes 1, like a peer without a doorbell.
  PageOf(*pair_->control)->armed.store(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(SendAndRing(end()));
    EXPECT_FALSE(end()->TakeDoorbellRequest());  // nothing was sent since then
  }
}

TEST_F(ShmHostileDoorbell, PeerWithTheFeatureGetsOne) {
  Connect(kTakesDoorbell);
  ASSERT_TRUE(ReceiveSetup(pair_->socket.get()).ok());  // the welcome
  auto received = ReceiveSetup(pair_->socket.get());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->message.kind, SetupMessage::Kind::kDoorbell);
  ASSERT_EQ(end()->wakeup_fds().size(), 1u);
  SleepingEnd asleep(end());
  for (int i = 0; i < 100; ++i) {
    const uint64_t nothing = 0;
    ASSERT_EQ(write(received->fd.get(), &nothing, sizeof nothing), 8);
  }
  EXPECT_TRUE(asleep.TakeRing());
  EXPECT_FALSE(asleep.TakeRing());
}

// The owner sleeps, and must learn that its path is lost.
TEST_F(ShmHostileDoorbell, HangUpWakesTheOwner) {
  Connect(kTakesDoorbell);
  SleepingEnd asleep(end());
  ASSERT_EQ(shutdown(pair_->socket.get(), SHUT_RDWR), 0);
  EXPECT_TRUE(WaitUntil([&asleep] { return asleep.TakeRing(); }));
  EXPECT_TRUE(end()->HasInput());
}

// Tests descriptors that are no eventfds. A write would block, end this process
// with SIGPIPE, or change another file.
TEST_F(ShmHostileDoorbell, AnythingButAnEventFdIsRefused) {
  int pipe_ends[2];
  int sockets[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  close(pipe_ends[0]);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  close(sockets[0]);
  const base::UniqueFd all[] = {
      base::UniqueFd(pipe_ends[1]), base::UniqueFd(sockets[1]),
      base::UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC)),
      base::UniqueFd(epoll_create1(EPOLL_CLOEXEC)),
      base::UniqueFd(memfd_create("anon_inode:[eventfd]", MFD_CLOEXEC))};
  for (const base::UniqueFd& fd : all) {
    Connect(kTakesDoorbell);
    Pass(fd.get());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ring());
    EXPECT_FALSE(end()->HasFailed());
  }
}

TEST_F(ShmHostileDoorbell, FullOneThatBlocksHoldsNobodyUp) {
  Connect(kTakesDoorbell);
  const base::UniqueFd fd(eventfd(0, EFD_CLOEXEC));
  const uint64_t most = UINT64_MAX - 1;
  ASSERT_EQ(write(fd.get(), &most, sizeof most), 8);
  Pass(fd.get());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Ring());
}

TEST_F(ShmHostileDoorbell, EmptiedOneStillRings) {
  Connect(kTakesDoorbell);
  const base::UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Pass(fd.get());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Ring());
}

// Tests a forked child, in which gRPC closes the parent's descriptors. The
// number may then belong to another descriptor.
TEST(Doorbell, ChildLeavesTheNumberOpen) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const base::UniqueFd sockets[] = {base::UniqueFd(ends[0]),
                                    base::UniqueFd(ends[1])};
  auto doorbell = std::make_unique<Doorbell>();
  doorbell->Offer(sockets[0].get());
  const int fd = doorbell->fd();
  ASSERT_GE(fd, 0);
  ForkedChild child([&] {
    doorbell.reset();
    EXPECT_GE(fcntl(fd, F_GETFD), 0);
  });
  EXPECT_TRUE(child.Join());
  doorbell.reset();
  EXPECT_LT(fcntl(fd, F_GETFD), 0);
}

// Tests that an end with a doorbell of its own keeps the peer's doorbell.
// Otherwise a sleeping peer could not be woken by this end.
TEST(Doorbell, PeersIsKeptNextToAnOwnOne) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const base::UniqueFd sockets[] = {base::UniqueFd(ends[0]),
                                    base::UniqueFd(ends[1])};
  Doorbell doorbell;
  doorbell.Offer(sockets[0].get());
  ASSERT_GE(doorbell.fd(), 0);
  base::UniqueFd peers(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {512, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(doorbell.TakePeers(std::move(peers)).ok());
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(doorbell.Ring());
}

TEST(Doorbell, SecondOneIsRefused) {
  Doorbell doorbell;
  const auto make = [] {
    return base::UniqueFd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  };
  EXPECT_FALSE(doorbell.Ring());
  EXPECT_TRUE(doorbell.TakePeers(make()).ok());
  EXPECT_TRUE(doorbell.Ring());
  EXPECT_TRUE(absl::IsInvalidArgument(doorbell.TakePeers(make())));
  EXPECT_TRUE(doorbell.Ring());
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
