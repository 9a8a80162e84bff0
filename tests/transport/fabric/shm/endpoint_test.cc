// Tests packets, doorbells and large payloads between two ends.

#include "transport/fabric/shm/endpoint.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ShmEndpointTest : public ::testing::Test {
 protected:
  ShmEndpointTest() : arena_(Arena::Create(64 * kMiB)) {
    Options options;
    options.arena = arena_;
    fabric_ = absl::make_unique<ShmFabric>(options);
    pair_ = MakePair(fabric_.get(), fabric_.get());
  }
  void SetUp() override { ASSERT_NE(pair_, nullptr); }

  Endpoint* a() { return pair_->listening.endpoint.get(); }
  Endpoint* b() { return pair_->connecting.endpoint.get(); }
  Recorder& at_a() { return pair_->listening.events; }
  Recorder& at_b() { return pair_->connecting.events; }

  std::shared_ptr<Arena> arena_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Pair> pair_;
};

TEST_F(ShmEndpointTest, PacketsGoBothWays) {
  EXPECT_FALSE(a()->HasInput());
  EXPECT_FALSE(a()->Poll());
  ASSERT_TRUE(Send(b(), "one"));
  ASSERT_TRUE(Send(b(), ""));
  ASSERT_TRUE(Send(a(), "three"));
  EXPECT_TRUE(a()->HasInput());
  EXPECT_TRUE(a()->Poll());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_a().packets, (std::vector<std::string>{"one", ""}));
  EXPECT_EQ(at_b().packets, (std::vector<std::string>{"three"}));
  EXPECT_FALSE(a()->HasInput());
  EXPECT_FALSE(a()->Poll());
}

TEST_F(ShmEndpointTest, CapabilitiesAreThoseOfSharedMemory) {
  EXPECT_EQ(a()->capabilities().max_packet_bytes, 64u * 1024);
  EXPECT_EQ(a()->capabilities().eager_max_bytes, 8u * 1024);
  EXPECT_TRUE(a()->capabilities().can_load);
  EXPECT_FALSE(a()->capabilities().is_lifeline);
  EXPECT_EQ(a()->Describe(), "ring 256 KiB");
}

TEST_F(ShmEndpointTest, OnePollIsBounded) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(b(), "x"));
  EXPECT_TRUE(a()->Poll());
  EXPECT_EQ(at_a().packets.size(), 64u);
  EXPECT_TRUE(a()->HasInput());
  EXPECT_TRUE(a()->Poll());
  EXPECT_EQ(at_a().packets.size(), 100u);
}

TEST_F(ShmEndpointTest, OnePollLoadsABoundedNumberOfBytes) {
  // Messages that are smaller than the bound, equal to it, and larger.
  for (const size_t size : {100 * 1024, 256 * 1024, 2 << 20}) {
    constexpr int kMessages = 12;
    std::vector<Exposure> exposures;
    for (int i = 0; i < kMessages; ++i) {
      exposures.push_back(b()->Expose(PatternPayload(size, 1), 1).value());
      ASSERT_TRUE(Send(b(), "announcement"));
    }
    size_t loaded = 0;
    at_a().on_packet = [&] {
      EXPECT_TRUE(a()->Load(exposures[loaded++].region).ok());
    };
    while (loaded < kMessages) {
      const size_t before = loaded;
      ASSERT_TRUE(a()->Poll());
      EXPECT_GT(loaded, before);
      EXPECT_LT((loaded - before - 1) * size, 256u * 1024) << size;
    }
    EXPECT_FALSE(a()->HasInput());
    at_a().on_packet = nullptr;
  }
}

// Returns true if `from` rings the doorbell of `to`, or asks for a doorbell
// over the lifeline. The lifeline is needed until `from` has received the
// doorbell.
bool Rings(Endpoint* from, SleepingEnd* to) {
  return from->TakeDoorbellRequest() || to->TakeRing();
}

TEST_F(ShmEndpointTest, FullRingIsWritableAgainAfterThePeerHasRead) {
  const std::string packet(60000, 'm');
  while (Send(b(), packet)) {
  }
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
  (void)b()->TakeDoorbellRequest();
  b()->SetArmed(true);
  SleepingEnd sleeping(b());
  EXPECT_TRUE(a()->Poll());
  // Expects that the owner of a() must ring b(), although a() has sent nothing:
  // b() sleeps until there is room.
  EXPECT_TRUE(Rings(a(), &sleeping));
  EXPECT_TRUE(b()->HasInput());
  EXPECT_TRUE(b()->Poll());
  EXPECT_EQ(at_b().writable, 1);
  EXPECT_FALSE(b()->HasInput());
  EXPECT_TRUE(Send(b(), packet));
}

// Returns the size of all mappings of control segments in this process.
uint64_t ControlKiB() {
  std::ifstream maps("/proc/self/smaps");
  uint64_t sum = 0;
  bool is_control = false;
  for (std::string line; std::getline(maps, line);) {
    uint64_t kib = 0;
    if (absl::StrContains(line, "memfd:penstock-")) {
      is_control = absl::StrContains(line, "penstock-control");
    } else if (std::sscanf(line.c_str(), "Pss: %" SCNu64, &kib) == 1 &&
               is_control) {
      sum += kib;
      is_control = false;
    }
  }
  return sum;
}

TEST_F(ShmEndpointTest, IdleConnectionIsSmallAndABusyOneGrows) {
  auto exchange = [this](const std::string& packet) {
    ASSERT_TRUE(Send(a(), packet));
    ASSERT_TRUE(b()->Poll());
    ASSERT_TRUE(Send(b(), packet));
    ASSERT_TRUE(a()->Poll());
  };
  for (int i = 0; i < 10000; ++i) exchange("12345678");
  // Expects a control segment for each side. Control segments of earlier tests
  // may still exist for a moment.
  EXPECT_TRUE(WaitUntil([] { return ControlKiB() == 2u * (8 + 8); }))
      << ControlKiB();
  exchange(std::string(60000, 'x'));
  EXPECT_EQ(at_a().packets.back(), std::string(60000, 'x'));
  EXPECT_EQ(ControlKiB(), 2u * (8 + 256));
  for (int i = 0; i < 10000; ++i) exchange("12345678");
}

TEST_F(ShmEndpointTest, NothingIsDeliveredBeforeStart) {
  const std::string token = NewTestToken();
  Outcome listened;
  Outcome connected;
  auto listen = fabric_->Listen(token, listened.callback());
  auto connect =
      fabric_->Connect(fabric_->Offer().value(), token, connected.callback());
  std::unique_ptr<Endpoint> one = listened.Take().value();
  std::unique_ptr<Endpoint> other = connected.Take().value();
  ASSERT_TRUE(Send(one.get(), "early"));
  EXPECT_FALSE(other->Poll());
  Recorder events;
  other->Start(&events);
  EXPECT_TRUE(other->Poll());
  EXPECT_EQ(events.packets, std::vector<std::string>{"early"});
}

TEST_F(ShmEndpointTest, EventMayDestroyTheEndpoint) {
  ASSERT_TRUE(Send(b(), "x"));
  ASSERT_TRUE(Send(b(), "y"));
  at_a().on_packet = [this] { pair_->listening.endpoint.reset(); };
  EXPECT_TRUE(a()->Poll());
  EXPECT_EQ(at_a().packets.size(), 1u);
}

TEST_F(ShmEndpointTest, LargePayloadIsLoadedInPlace) {
  for (size_t size : {size_t{1}, size_t{100000}, size_t{20 * kMiB}}) {
    auto exposure = b()->Expose(PatternPayload(size, 7), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    EXPECT_EQ(exposure->stable.size(), size);
    auto loaded = a()->Load(exposure->region);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ(loaded->pieces().size(), 1u);
    const memory::Bytes& bytes = loaded->pieces()[0];
    EXPECT_EQ(bytes.size, size);
    EXPECT_TRUE(HasPattern(bytes.span(), 7));
    // Expects that the two ends map the same memory, and so exchange bytes
    // without a copy.
    const memory::Bytes& stable = exposure->stable.pieces()[0];
    EXPECT_NE(stable.data, bytes.data);
    const_cast<uint8_t*>(stable.data)[0] = 99;
    EXPECT_EQ(bytes.data[0], 99);
  }
}

TEST_F(ShmEndpointTest, PiecesOfAPayloadBecomeOne) {
  memory::Payload payload = PatternPayload(5000, 1);
  payload.Append(PatternPayload(3000, 2).pieces()[0]);
  auto exposure = a()->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  auto loaded = b()->Load(exposure->region);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->pieces().size(), 1u);
  const absl::Span<const uint8_t> bytes = loaded->pieces()[0].span();
  EXPECT_TRUE(HasPattern(bytes.subspan(0, 5000), 1));
  EXPECT_TRUE(HasPattern(bytes.subspan(5000), 2));
}

TEST_F(ShmEndpointTest, DroppingTheLastShareEndsTheLoan) {
  auto exposure = b()->Expose(PatternPayload(kMiB, 3), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  auto bytes = a()->Load(exposure->region);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  memory::Bytes share = bytes->pieces()[0].Part(10, 10);
  b()->Withdraw(exposure->region);
  *exposure = Exposure();
  *bytes = memory::Payload();
  b()->Poll();
  EXPECT_EQ(arena_->used(), kMiB);
  share = memory::Bytes();
  EXPECT_EQ(arena_->used(), kMiB);  // until the lender looks for returned loans
  b()->Poll();
  EXPECT_EQ(arena_->used(), 0u);
}

TEST_F(ShmEndpointTest, LendersOwnShareKeepsTheLeaseToo) {
  auto exposure = b()->Expose(PatternPayload(kMiB, 3), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  (void)a()->Load(exposure->region);
  b()->Poll();
  EXPECT_EQ(arena_->used(), kMiB);
  EXPECT_TRUE(HasPattern(exposure->stable.pieces()[0].span(), 3));
}

TEST_F(ShmEndpointTest, ReadCopiesAndGivingBackEndsTheLoan) {
  auto exposure = b()->Expose(PatternPayload(3 * kMiB, 4), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  const RemoteRegion region = exposure->region;
  *exposure = Exposure();
  std::vector<uint8_t> into(3 * kMiB);
  for (uint64_t i = 0; i < 3; ++i) {
    b()->Poll();
    EXPECT_EQ(arena_->used(), 3 * kMiB);
    a()->Read(region[0], i * kMiB, absl::MakeSpan(into).subspan(i * kMiB, kMiB),
              i);
    EXPECT_TRUE(at_a().reads[i].ok()) << at_a().reads[i];
  }
  EXPECT_TRUE(HasPattern(into, 4));
  b()->Poll();
  EXPECT_EQ(arena_->used(), 3 * kMiB);
  a()->GiveBack(region);
  b()->Poll();
  EXPECT_EQ(arena_->used(), 0u);
}

TEST_F(ShmEndpointTest, RegionsOutsideWhatWasPassedAreRefused) {
  auto exposure = b()->Expose(PatternPayload(kMiB, 5), 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  const RemotePart good = exposure->region[0];
  const uint64_t end = 16 * kMiB;
  for (RemotePart bad : {
           RemotePart{good.key, 0, end + 1},
           RemotePart{good.key, end + 1, 0},
           RemotePart{good.key, ~uint64_t{0}, 2},
           RemotePart{good.key, 2, ~uint64_t{0}},
           RemotePart{good.key + (uint64_t{1} << 32), 0, 1},
           RemotePart{0, 0, 1},
       }) {
    EXPECT_FALSE(a()->Load({bad}).ok()) << bad.key << " " << bad.offset;
    uint8_t byte;
    a()->Read(bad, 0, absl::MakeSpan(&byte, 1), 9);
    EXPECT_FALSE(at_a().reads[9].ok());
  }
  uint8_t byte;
  a()->Read(good, good.length, absl::MakeSpan(&byte, 1), 10);
  EXPECT_FALSE(at_a().reads[10].ok());
  EXPECT_TRUE(a()->Load({good}).ok());
}

TEST_F(ShmEndpointTest, NoRoomIsANormalAnswer) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      b()->Expose(PatternPayload(65 * kMiB, 1), 1).status()));
  auto large = b()->Expose(PatternPayload(60 * kMiB, 1), 1);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_TRUE(absl::IsResourceExhausted(
      b()->Expose(PatternPayload(10 * kMiB, 1), 1).status()));
  const RemoteRegion region = large->region;
  *large = Exposure();
  (void)a()->Load(region);  // the caller drops the payload
  EXPECT_TRUE(b()->Expose(PatternPayload(10 * kMiB, 1), 1).ok());
}

TEST_F(ShmEndpointTest, LoansAreBoundedAndComeBack) {
  std::vector<RemoteRegion> regions;
  for (uint32_t i = 0; i < kMaxLoans; ++i) {
    auto exposure = b()->Expose(PatternPayload(64, 1), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    regions.push_back(exposure->region);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(
      b()->Expose(PatternPayload(64, 1), 1).status()));
  for (int round = 0; round < 3; ++round) {
    for (RemoteRegion& region : regions) {
      ASSERT_TRUE(a()->Load(region).ok());
      region = b()->Expose(PatternPayload(64, 1), 1).value().region;
    }
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
