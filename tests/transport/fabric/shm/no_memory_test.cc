// The system gives no memory: an answer, and nobody dies of it.

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
#include "transport/fabric/shm/fabric.h"
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

// Without SIGXFSZ, whose default is to kill.
TEST(NoMemory, FileSizeLimitIsAnAnswerWithItsRemedy) {
  ForkedChild child([] {
    Limit(RLIMIT_FSIZE, kMiB);
    EXPECT_TRUE(Segment::Create("test", kMiB, Touch::kWhenUsed).ok());
    const absl::Status status =
        Segment::Create("test", kMiB + 1, Touch::kWhenUsed).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -f"));
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, AddressSpaceLimitIsAnAnswerWithItsRemedy) {
  ForkedChild child([] {
    Limit(RLIMIT_AS, AddressSpace() + 4 * kMiB);
    const absl::Status status =
        Segment::Create("test", 8 * kMiB, Touch::kWhenUsed).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -v"));
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, ArenaThatCannotGrowAsksAgainLater) {
  ForkedChild child([] {
    auto arena = Arena::Create(64 * kMiB);
    auto lease = arena->Allocate(16 * kMiB);  // all of its first segment
    ASSERT_TRUE(lease.ok()) << lease.status();
    rlimit limit = {kMiB, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(kMiB).status()));
    limit.rlim_cur = RLIM_INFINITY;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    // Not at once, but before long.
    EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(kMiB).status()));
    EXPECT_TRUE(WaitUntil([&] { return arena->Allocate(kMiB).ok(); }));
  });
  EXPECT_TRUE(child.Join());
}

TEST(NoMemory, PeerThatCannotMapAMessageGivesItBack) {
  auto arena = Arena::Create(64 * kMiB);
  Options options;
  options.arena = arena;
  ShmFabric fabric(options);
  ForkedChild child([&] {
    auto pair = MakePair(&fabric, &fabric);
    ASSERT_NE(pair, nullptr);
    auto exposure =
        pair->listening.endpoint->Expose(PatternPayload(8 * kMiB, 1));
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    const RemoteRegion region = exposure->region;
    *exposure = Exposure();
    Limit(RLIMIT_AS, AddressSpace() + kMiB);
    Endpoint* reader = pair->connecting.endpoint.get();
    EXPECT_FALSE(reader->Load(region).ok());
    uint8_t byte;
    reader->Read(region, 0, absl::MakeSpan(&byte, 1), 1);
    EXPECT_FALSE(pair->connecting.events.reads[1].ok());
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
