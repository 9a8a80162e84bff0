// Tests an end against a peer that writes invalid data, or whose socket is shut
// down.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The peer's control page and socket belong to the test.
class ShmHostileEnd : public ::testing::Test {
 protected:
  ShmHostileEnd() : arena_(Arena::Create(64 << 20)) {
    Options options;
    options.arena = arena_;
    fabric_ = std::make_unique<ShmFabric>(options);
    pair_ = MakeRawPair(fabric_.get());
  }
  void SetUp() override { ASSERT_NE(pair_, nullptr); }

  Endpoint* endpoint() { return pair_->end.endpoint.get(); }
  Recorder& events() { return pair_->end.events; }
  ControlPage* page() { return PageOf(*pair_->control); }
  void ExpectBroken() {
    EXPECT_TRUE(endpoint()->HasInput());
    EXPECT_TRUE(endpoint()->Poll());
    ASSERT_EQ(events().broken.size(), 1u);
    EXPECT_TRUE(absl::IsDataLoss(events().broken[0])) << events().broken[0];
    EXPECT_FALSE(endpoint()->HasInput());
    EXPECT_FALSE(endpoint()->Poll());
    EXPECT_FALSE(Send(endpoint(), "x"));
  }

  std::shared_ptr<Arena> arena_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<RawPair> pair_;
};

TEST_F(ShmHostileEnd, NonsenseHeadBreaks) {
  page()->head.store(12345);
  ExpectBroken();
}

TEST_F(ShmHostileEnd, NonsenseTailBreaks) {
  page()->tail.store(1 << 30);
  const std::string packet(60000, 'm');
  while (Send(endpoint(), packet)) {
  }
  ExpectBroken();
}

TEST_F(ShmHostileEnd, ReleaseOfMoreThanThereIsBreaks) {
  ASSERT_TRUE(endpoint()->Expose(PatternPayload(100, 1), 1).ok());
  page()->release_head.store(kMaxLoans + 1);
  EXPECT_FALSE(endpoint()->Expose(PatternPayload(100, 1), 1).ok());
  ExpectBroken();
}

TEST_F(ShmHostileEnd, ReleaseOfUnknownLoansIsIgnored) {
  auto exposure = endpoint()->Expose(PatternPayload(100, 1), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  for (uint32_t i = 0; i < kMaxLoans; ++i) page()->releases[i] = 1000000 + i;
  page()->release_head.store(kMaxLoans);
  endpoint()->Poll();
  EXPECT_TRUE(events().broken.empty());
  *exposure = Exposure();
  EXPECT_EQ(arena_->used(), 128u);  // the memory is still lent
}

// Tests a socket that is shut down while the peer lives. The peer may still
// write, so the end must not report that the peer has closed.
TEST_F(ShmHostileEnd, SocketThatEndsIsNoClosedPeer) {
  ASSERT_EQ(shutdown(pair_->socket.get(), SHUT_RDWR), 0);
  ASSERT_TRUE(WaitUntil([this] { return endpoint()->HasInput(); }));
  EXPECT_TRUE(endpoint()->Poll());
  ASSERT_EQ(events().broken.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(events().broken[0])) << events().broken[0];
}

// The peer may not know yet that its socket has ended. Otherwise the peer could
// write a packet after the end's last look at the ring, and end believing that
// the packet will be read.
TEST_F(ShmHostileEnd, PeerKnowsAtOnceThatNothingMoreIsRead) {
  auto welcome = ReceiveSetup(pair_->socket.get());
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  const auto control =
      MapControl(std::move(welcome->fd), welcome->message.size);
  ASSERT_TRUE(control.ok()) << control.status();
  ASSERT_EQ(shutdown(pair_->socket.get(), SHUT_WR), 0);
  ASSERT_TRUE(WaitUntil([this] { return endpoint()->HasInput(); }));
  EXPECT_EQ(PageOf(*control)->closed, 0u);
  EXPECT_TRUE(endpoint()->Poll());
  ASSERT_EQ(events().broken.size(), 1u);
  EXPECT_EQ(PageOf(*control)->closed, 1u);
}

TEST_F(ShmHostileEnd, ClosedPeerMayShutItsSocketDown) {
  page()->closed = 1;
  ASSERT_EQ(shutdown(pair_->socket.get(), SHUT_RDWR), 0);
  EXPECT_TRUE(endpoint()->Poll());
  ASSERT_EQ(events().broken.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(events().broken[0])) << events().broken[0];
}

TEST_F(ShmHostileEnd, UnsealedSegmentIsRefused) {
  base::UniqueFd memory(memfd_create("hostile", MFD_CLOEXEC));
  ASSERT_EQ(posix_fallocate(memory.get(), 0, 4096), 0);
  SetupMessage segment;
  segment.kind = SetupMessage::Kind::kSegment;
  segment.size = 4096;
  segment.segment_id = 5;
  ASSERT_TRUE(SendSetup(pair_->socket.get(), segment, memory.get()).ok());
  const RemoteRegion region{{uint64_t{5} << 32, 0, 100}};
  EXPECT_TRUE(absl::IsFailedPrecondition(endpoint()->Load(region).status()));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
