// Tests a peer that is another process, and dies.

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/death_rig.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/fabric.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

void RunPeer(const std::string& offer, const std::string& token) {
  DyingPeer peer(Options(), offer, token);
  peer.Serve(
      [](const memory::Payload& loaded) {
        return HasPattern(loaded.pieces()[0].span(), 11);
      },
      PatternPayload(kMiB, 12));
  _exit(0);
}

class ShmPeerDeath : public DeathRig {
 protected:
  void SetUp() override {
    arena_ = Arena::Create(64 * kMiB);
    Options options;
    options.arena = arena_;
    Start(options, &RunPeer);
  }
  // Makes the peer hold 4 MiB of this process's memory, and this process 1 MiB
  // of the peer's memory.
  void Exchange() {
    ASSERT_NO_FATAL_FAILURE(DeathRig::Exchange(PatternPayload(4 * kMiB, 11)));
    EXPECT_EQ(arena_->used(), 4 * kMiB);
  }

  std::shared_ptr<Arena> arena_;
};

TEST_F(ShmPeerDeath, IsNoticedAndLoansComeBack) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  Kill();
  ASSERT_TRUE(WaitUntil([this] { return endpoint_->HasInput(); }));
  endpoint_->Poll();
  ASSERT_EQ(events_.broken.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(events_.broken[0])) << events_.broken[0];
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
  // Expects that memory of the dead peer that was loaded stays valid.
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
  endpoint_.reset();
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
}

// Returns how much of peers' memory this process has mapped, in bytes.
uint64_t MappedOfPeers() {
  uint64_t bytes = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin;  // NOLINT(google-runtime-int): sscanf's
    unsigned long end;    // NOLINT(google-runtime-int)
    if (line.find(" r--s ") == std::string::npos ||
        line.find("memfd:") == std::string::npos ||
        sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) {
      continue;
    }
    bytes += end - begin;
  }
  return bytes;
}

// Tests how much of the dead peer's memory stays mapped. The peer's arena has
// at least 16 MiB.
TEST_F(ShmPeerDeath, OnlyWhatIsHeldOfTheDeadStays) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  EXPECT_GE(MappedOfPeers(), 16 * kMiB);
  Kill();
  ASSERT_TRUE(PollUntilBroken());
  endpoint_.reset();
  EXPECT_TRUE(WaitUntil([] { return MappedOfPeers() < 4 * kMiB; }));
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
}

TEST_F(ShmPeerDeath, OnlyWhatIsHeldStaysIfThePeerDiesLongAfterTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  kill(peer(), SIGSTOP);
  endpoint_.reset();
  EXPECT_GE(MappedOfPeers(), 16 * kMiB);
  Kill();
  EXPECT_TRUE(WaitUntil([] { return MappedOfPeers() < 4 * kMiB; }));
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
}

TEST_F(ShmPeerDeath, AfterOurEndIsGoneLoansComeBackToo) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  // Stops the peer, so that it can return nothing itself.
  kill(peer(), SIGSTOP);
  endpoint_.reset();
  EXPECT_EQ(arena_->used(), 4 * kMiB);
  Kill();
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
}

TEST_F(ShmPeerDeath, PeerNoticesThatOurEndIsGone) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  endpoint_.reset();
  EXPECT_EQ(WaitForPeer(), 0);
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
}

TEST_F(ShmPeerDeath, DeathRightAfterSetUpIsNoticed) {
  Kill();
  ASSERT_TRUE(PollUntilBroken());
}

TEST_F(ShmPeerDeath, ForkedCopyOfAnEndpointTouchesNothing) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  DropInForkedCopy([] { return true; });
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
  DeathRig::Exchange(PatternPayload(kMiB, 11));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
