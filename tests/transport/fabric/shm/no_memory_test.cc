// Tests a system without free memory: the caller gets an error, and no process
// dies.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/ring.h"
#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

void Limit(int resource, uint64_t value) {
  const rlimit limit = {value, value};
  ASSERT_EQ(setrlimit(static_cast<__rlimit_resource>(resource), &limit), 0);
}

uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Tests the limit of file sizes. The call must return the error without
// SIGXFSZ, which kills by default.
TEST(NoMemory, FileSizeLimitIsAnAnswerWithItsRemedy) {
  ForkedChild child([] {
    Limit(RLIMIT_FSIZE, kMiB);
    EXPECT_TRUE(Segment::Create("test", kMiB).ok());
    const absl::Status status = Segment::Create("test", kMiB + 1).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -f"));
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, AddressSpaceLimitIsAnAnswerWithItsRemedy) {
  ForkedChild child([] {
    Limit(RLIMIT_AS, AddressSpace() + 4 * kMiB);
    const absl::Status status = Segment::Create("test", 8 * kMiB).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -v"));
  });
  EXPECT_TRUE(child.Join());
}

// Tests a ring that cannot grow. The test unmaps a page. This page cannot be
// populated, as if memory were used up.
TEST(NoMemory, RingThatCannotGrowGoesOnWithWhatItHas) {
  ForkedChild child([] {
    auto writer = CreateControl(256 * 1024);
    auto reader = CreateControl(256 * 1024);
    RingSender sender(PageOf(*writer), PageOf(*reader));
    RingReceiver receiver(PageOf(*reader), PageOf(*writer), 256 * 1024);
    ASSERT_EQ(munmap(writer->data() + 128 * 1024, 4096), 0);
    const std::string packet(1000, 'm');
    for (int round = 0; round < 100; ++round) {
      int sent = 0;
      while (sender.Send(AsBytes(packet)) == RingSender::Result::kSent) ++sent;
      ASSERT_GE(sent, static_cast<int>(kFirstRingBytes) / 1024 - 1);
      absl::Span<const uint8_t> got;
      for (; sent > 0; --sent) {
        ASSERT_EQ(receiver.Receive(&got), RingReceiver::Result::kPacket);
      }
      EXPECT_TRUE(sender.RoomHasCome());
    }
    EXPECT_EQ(sender.Send(AsBytes(std::string(20000, 'x'))),
              RingSender::Result::kNoMemory);
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, ReaderWithoutMemoryForAGrownRingLeavesThePath) {
  ForkedChild child([] {
    auto writer = CreateControl(256 * 1024);
    auto reader = CreateControl(256 * 1024);
    auto mapped = MapControl(
        base::UniqueFd(fcntl(writer->fd(), F_DUPFD_CLOEXEC, 0)), 256 * 1024);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    RingSender sender(PageOf(*writer), PageOf(*reader));
    RingReceiver receiver(PageOf(*reader), PageOf(*mapped), 256 * 1024);
    ASSERT_EQ(munmap(const_cast<uint8_t*>(mapped->data()) + 128 * 1024, 4096),
              0);
    ASSERT_EQ(sender.Send(AsBytes(std::string(20000, 'x'))),
              RingSender::Result::kSent);
    absl::Span<const uint8_t> got;
    EXPECT_EQ(receiver.Receive(&got), RingReceiver::Result::kBroken);
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, ArenaThatCannotGrowAsksAgainLater) {
  ForkedChild child([] {
    auto arena = Arena::Create(64 * kMiB);
    // Takes all of the arena's first segment.
    auto lease = arena->Allocate(16 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    rlimit limit = {kMiB, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(kMiB).status()));
    limit.rlim_cur = RLIM_INFINITY;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    // Expects that memory is returned after a short delay.
    EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(kMiB).status()));
    EXPECT_TRUE(WaitUntil([&] { return arena->Allocate(kMiB).ok(); }));
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, PeerThatCannotMapAMessageGivesItBack) {
  ForkedChild child([] {
    auto arena = Arena::Create(64 * kMiB);
    Options options;
    options.arena = arena;
    ShmFabric fabric(options);
    auto pair = MakePair(&fabric, &fabric);
    ASSERT_NE(pair, nullptr);
    ASSERT_TRUE(arena->Allocate(1).ok());  // the owner has its mapping
    const memory::Payload payload = PatternPayload(8 * kMiB, 1);
    Limit(RLIMIT_AS, AddressSpace() + kMiB);
    auto exposure = pair->listening.endpoint->Expose(payload, 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    const RemoteRegion region = exposure->region;
    *exposure = Exposure();
    Endpoint* reader = pair->connecting.endpoint.get();
    EXPECT_FALSE(reader->Load(region).ok());
    uint8_t byte;
    reader->Read(region[0], 0, absl::MakeSpan(&byte, 1), 1);
    EXPECT_FALSE(pair->connecting.events.reads[1].ok());
    reader->GiveBack(region);
    pair->listening.endpoint->Poll();
    EXPECT_TRUE(pair->listening.events.broken.empty());
    EXPECT_EQ(arena->used(), 0u);
  });
  EXPECT_TRUE(child.Join());
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
