// The peer is another process, and that process dies.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/fabric.h"

// ThreadSanitizer calls this function. By default it kills a forked child that
// makes threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Sends the description of a region in a packet. PartIn() reads it.
bool SendPart(Endpoint* from, const RemoteRegion& region) {
  const auto* bytes = reinterpret_cast<const char*>(&region[0]);
  return Send(from, absl::string_view(bytes, sizeof region[0]));
}
RemotePart PartIn(const std::string& packet) {
  RemotePart part;
  EXPECT_EQ(packet.size(), sizeof part);
  if (packet.size() == sizeof part) memcpy(&part, packet.data(), sizeof part);
  return part;
}

// The child connects, and loads and holds each region that it receives.
[[noreturn]] void RunPeer(const std::string& offer, const std::string& token) {
  ShmFabric fabric;
  Outcome outcome;
  auto connect = fabric.Connect(offer, token, outcome.callback());
  auto connected = outcome.Take();
  if (!connected.ok()) _exit(2);
  std::unique_ptr<Endpoint> endpoint = *std::move(connected);
  Recorder events;
  endpoint->Start(&events);
  memory::Payload held;
  events.on_packet = [&] {
    auto bytes = endpoint->Load({PartIn(events.packets.back())});
    if (!bytes.ok() || !HasPattern(bytes->pieces()[0].span(), 11)) _exit(4);
    held = *std::move(bytes);
    // The child lends memory as well, which the other side will hold.
    auto exposure = endpoint->Expose(PatternPayload(kMiB, 12), 1);
    if (!exposure.ok()) _exit(5);
    if (!SendPart(endpoint.get(), exposure->region)) _exit(6);
  };
  (void)WaitUntil([&] {
    endpoint->Poll();
    return !events.broken.empty();
  });
  _exit(events.broken.empty() ? 7 : 0);
}

class ShmPeerDeath : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_ = Arena::Create(64 * kMiB);
    Options options;
    options.arena = arena_;
    fabric_ = absl::make_unique<ShmFabric>(options);
    const std::string offer = fabric_->Offer().value();
    const std::string token = NewTestToken();
    Outcome outcome;
    auto listen = fabric_->Listen(token, outcome.callback());
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) RunPeer(offer, token);
    auto endpoint = outcome.Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    endpoint_->Start(&events_);
  }
  void TearDown() override {
    if (child_ > 0) Kill();
  }

  void Kill() {
    kill(child_, SIGKILL);
    (void)WaitForChild();
    child_ = 0;
  }
  int WaitForChild() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    child_ = 0;
    return status;
  }
  // Makes the peer hold 4 MiB of this process, and this process 1 MiB of the
  // peer.
  void Exchange() {
    auto exposure = endpoint_->Expose(PatternPayload(4 * kMiB, 11), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    ASSERT_TRUE(SendPart(endpoint_.get(), exposure->region));
    ASSERT_TRUE(WaitUntil([this] {
      endpoint_->Poll();
      return !events_.packets.empty();
    }));
    auto bytes = endpoint_->Load({PartIn(events_.packets[0])});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    held_ = *std::move(bytes);
    EXPECT_EQ(arena_->used(), 4 * kMiB);
  }

  std::shared_ptr<Arena> arena_;
  std::unique_ptr<ShmFabric> fabric_;
  pid_t child_ = 0;
  Recorder events_;
  std::unique_ptr<Endpoint> endpoint_;
  memory::Payload held_;
};

TEST_F(ShmPeerDeath, IsNoticedAndLoansComeBack) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  Kill();
  ASSERT_TRUE(WaitUntil([this] { return endpoint_->HasInput(); }));
  endpoint_->Poll();
  ASSERT_EQ(events_.broken.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(events_.broken[0])) << events_.broken[0];
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
  // Memory that was loaded from the dead peer stays valid.
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

// The peer's arena has at least 16 MiB.
TEST_F(ShmPeerDeath, OnlyWhatIsHeldOfTheDeadStays) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  EXPECT_GE(MappedOfPeers(), 16 * kMiB);
  Kill();
  ASSERT_TRUE(WaitUntil([this] {
    endpoint_->Poll();
    return !events_.broken.empty();
  }));
  endpoint_.reset();
  EXPECT_TRUE(WaitUntil([] { return MappedOfPeers() < 4 * kMiB; }));
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
}

TEST_F(ShmPeerDeath, OnlyWhatIsHeldStaysIfThePeerDiesLongAfterTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  kill(child_, SIGSTOP);
  endpoint_.reset();
  EXPECT_GE(MappedOfPeers(), 16 * kMiB);
  Kill();
  EXPECT_TRUE(WaitUntil([] { return MappedOfPeers() < 4 * kMiB; }));
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
}

TEST_F(ShmPeerDeath, AfterOurEndIsGoneLoansComeBackToo) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  // A stopped peer cannot give anything back itself.
  kill(child_, SIGSTOP);
  endpoint_.reset();
  EXPECT_EQ(arena_->used(), 4 * kMiB);
  Kill();
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
}

TEST_F(ShmPeerDeath, PeerNoticesThatOurEndIsGone) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  endpoint_.reset();
  EXPECT_EQ(WaitForChild(), 0);
  EXPECT_TRUE(WaitUntil([this] { return arena_->used() == 0; }));
}

TEST_F(ShmPeerDeath, DeathRightAfterSetUpIsNoticed) {
  Kill();
  ASSERT_TRUE(WaitUntil([this] {
    endpoint_->Poll();
    return !events_.broken.empty();
  }));
}

TEST_F(ShmPeerDeath, ForkedCopyOfAnEndpointTouchesNothing) {
  ASSERT_NO_FATAL_FAILURE(Exchange());
  const pid_t copy = fork();
  ASSERT_GE(copy, 0);
  if (copy == 0) {
    held_ = memory::Payload();
    endpoint_.reset();
    fabric_.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(copy, &status, 0), copy);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(HasPattern(held_.pieces()[0].span(), 12));
  endpoint_->Poll();
  EXPECT_TRUE(events_.broken.empty());
  // The connection still works.
  events_.packets.clear();
  ASSERT_NO_FATAL_FAILURE({
    auto exposure = endpoint_->Expose(PatternPayload(kMiB, 11), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    ASSERT_TRUE(SendPart(endpoint_.get(), exposure->region));
    ASSERT_TRUE(WaitUntil([this] {
      endpoint_->Poll();
      return !events_.packets.empty();
    }));
  });
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
