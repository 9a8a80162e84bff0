// Tests payload memory with huge pages, without any, and from a hostile peer. A
// test is skipped if it may not change the kernel's settings.

#include "transport/fabric/shm/huge_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/kernel_pages.h"
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
constexpr uint64_t kBytes = 4 * kMiB;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL;
constexpr unsigned kTwoMiB = 21U << 26;  // MFD_HUGE_2MB, MFD_HUGE_1GB
constexpr unsigned kOneGiB = 30U << 26;

base::UniqueFd Duplicate(int fd) {
  return base::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

bool IsAligned(const uint8_t* data) {
  return reinterpret_cast<uintptr_t>(data) % kHugePageBytes == 0;
}

// Maps every page of the range.
void Touch(const uint8_t* data, uint64_t size) {
  EXPECT_TRUE(Populate(data, size, Access::kRead).ok());
}

uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST(AlignedMapping, PayloadsLieAtHugePagesOnBothSides) {
  // Tries several sizes, because one size could be aligned by chance.
  for (uint64_t size : {kBytes, kBytes + 4096, uint64_t{4096}, 5 * kMiB}) {
    auto segment = Segment::Create("test", size, HugePages::kTransparent);
    ASSERT_TRUE(segment.ok()) << segment.status();
    EXPECT_TRUE(IsAligned(segment->data())) << size;
    auto peer = PeerSegment::Map(Duplicate(segment->fd()), size);
    ASSERT_TRUE(peer.ok()) << peer.status();
    EXPECT_TRUE(IsAligned(peer->data())) << size;
    segment->data()[size - 1] = 77;
    EXPECT_EQ(peer->data()[size - 1], 77);
  }
}

TEST(AlignedMapping, LeavesNoAddressesBehind) {
  uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 1) before = AddressSpace();
    base::UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd.get(), 5000), 0);
    ASSERT_EQ(fallocate(fd.get(), 0, 0, 5000), 0);
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kAllSeals), 0);
    ASSERT_TRUE(PeerSegment::Map(std::move(fd), 5000).ok());
    ASSERT_TRUE(Segment::Create("test", kBytes, HugePages::kTransparent).ok());
  }
  EXPECT_EQ(AddressSpace(), before);
}

class TransparentTest : public testing::Test {
 protected:
  static constexpr char kSetting[] =
      "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

  void SetUp() override {
    setting_ = std::make_unique<KernelSetting>(kSetting, "advise");
    if (!setting_->why_not().empty()) GTEST_SKIP() << setting_->why_not();
    if (!KernelHasOne()) GTEST_SKIP() << "no huge page is free on this machine";
  }

  // Asks the kernel itself for a huge page, without the code under test.
  // Returns true if the kernel has one.
  static bool KernelHasOne() {
    base::UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fd.get(), 4 * kMiB), 0);
    void* const data = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd.get(), 0);
    madvise(data, 4 * kMiB, MADV_HUGEPAGE);
    std::memset(data, 1, 4 * kMiB);
    const bool has = CountHugelyMapped(data).transparent > 0;
    munmap(data, 4 * kMiB);
    return has;
  }

  KernelPagesLock lock_;
  std::unique_ptr<KernelSetting> setting_;
};

constexpr char TransparentTest::kSetting[];

TEST_F(TransparentTest, BothSidesMapHugePages) {
  auto segment = Segment::Create("test", kBytes, HugePages::kTransparent);
  ASSERT_TRUE(segment.ok()) << segment.status();
  Touch(segment->data(), kBytes);
  EXPECT_EQ(CountHugelyMapped(segment->data()).transparent, kBytes);
  auto peer = PeerSegment::Map(Duplicate(segment->fd()), kBytes);
  ASSERT_TRUE(peer.ok()) << peer.status();
  Touch(peer->data(), kBytes);
  EXPECT_EQ(CountHugelyMapped(peer->data()).transparent, kBytes);
}

TEST_F(TransparentTest, ArenaAsksForThemUnlessTheyAreOff) {
  for (HugePages wanted : {HugePages::kTransparent, HugePages::kOff}) {
    auto arena = Arena::Create(64 * kMiB, wanted);
    auto lease = arena->Allocate(16 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    Touch((*lease)->data(), 16 * kMiB);
    EXPECT_EQ(CountHugelyMapped((*lease)->data()).transparent,
              wanted == HugePages::kOff ? 0 : 16 * kMiB);
    EXPECT_EQ(arena->Describe(), "");
  }
}

TEST_F(TransparentTest, ControlPagesStaySmall) {
  auto segment = Segment::CreatePart("test", kBytes, 4096);
  ASSERT_TRUE(segment.ok()) << segment.status();
  Touch(segment->data(), kBytes);
  EXPECT_EQ(CountHugelyMapped(segment->data()).transparent, 0u);
}

TEST(NoHugePages, TransparentOnesAreOnlyAdvice) {
  KernelPagesLock lock;
  KernelSetting never("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                      "never");
  if (!never.why_not().empty()) GTEST_SKIP() << never.why_not();
  auto arena = Arena::Create(64 * kMiB, HugePages::kTransparent);
  auto lease = arena->Allocate(16 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  std::memset((*lease)->data(), 7, 16 * kMiB);
  EXPECT_EQ(CountHugelyMapped((*lease)->data()).transparent, 0u);
}

TEST(NoHugePages, TooFewReservedIsAnAnswerWithItsRemedy) {
  KernelPagesLock lock;
  const ReservedPages pages = CountReservedPages();
  const uint64_t size = (pages.free + pages.overcommit + 1) * kHugePageBytes;
  const absl::Status status =
      Segment::Create("test", size, HugePages::kReserved).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("vm.nr_hugepages"));
  EXPECT_EQ(CountReservedPages().free, pages.free);
}

TEST(NoHugePages, ArenaGoesOnWithoutReservedOnesAndSaysWhyOnce) {
  KernelPagesLock lock;
  const ReservedPages pages = CountReservedPages();
  if (pages.free + pages.overcommit > 0) {
    GTEST_SKIP() << "this machine has reserved huge pages to spare";
  }
  auto arena = Arena::Create(64 * kMiB, HugePages::kReserved);
  testing::internal::CaptureStderr();
  auto first = arena->Allocate(16 * kMiB);
  auto second = arena->Allocate(16 * kMiB);
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  std::memset((*second)->data(), 7, 16 * kMiB);
  const size_t at = said.find("vm.nr_hugepages");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("vm.nr_hugepages", at + 1), std::string::npos) << said;
  EXPECT_EQ(arena->Describe(), "0 of 48 MiB in reserved huge pages");
}

// Reserves eight huge pages, 16 MiB, if none was reserved.
class ReservedTest : public testing::Test {
 protected:
  void SetUp() override {
    const ReservedPages pages = CountReservedPages();
    if (pages.total + pages.overcommit > 0) {
      GTEST_SKIP() << "this machine has reserved huge pages of its own, which "
                      "this test leaves alone";
    }
    setting_ =
        std::make_unique<KernelSetting>("/proc/sys/vm/nr_hugepages", "8");
    if (!setting_->why_not().empty()) GTEST_SKIP() << setting_->why_not();
  }

  // Makes a segment as a hostile peer would. `make` fills the file before it is
  // sealed.
  template <typename Make>
  static base::UniqueFd Memfd(Make make, int seals = kAllSeals,
                              unsigned pages = kTwoMiB) {
    base::UniqueFd fd(memfd_create(
        "test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | pages));
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(make(fd.get()));
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
  }
  static bool Allocate(int fd) { return fallocate(fd, 0, 0, kBytes) == 0; }

  KernelPagesLock lock_;
  std::unique_ptr<KernelSetting> setting_;
};

TEST_F(ReservedTest, BothSidesMapThem) {
  auto segment = Segment::Create("test", 16 * kMiB, HugePages::kReserved);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(CountReservedPages().free, 0u);
  std::memset(segment->data(), 77, 16 * kMiB);
  EXPECT_EQ(CountHugelyMapped(segment->data()).reserved, 16 * kMiB);
  auto peer = PeerSegment::Map(Duplicate(segment->fd()), 16 * kMiB);
  ASSERT_TRUE(peer.ok()) << peer.status();
  Touch(peer->data(), 16 * kMiB);
  EXPECT_EQ(peer->data()[16 * kMiB - 1], 77);
  EXPECT_EQ(CountHugelyMapped(peer->data()).reserved, 16 * kMiB);
}

TEST_F(ReservedTest, SizesAreRoundedUpToThem) {
  auto segment = Segment::Create("test", kBytes - kMiB, HugePages::kReserved);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(segment->size(), kBytes);
}

TEST_F(ReservedTest, NobodyElseWritesThemShrinksOrPunchesHoles) {
  auto segment = Segment::Create("test", kBytes, HugePages::kReserved);
  ASSERT_TRUE(segment.ok()) << segment.status();
  const int fd = segment->fd();
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_NE(
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes), 0);
  EXPECT_NE(madvise(segment->data(), kBytes, MADV_REMOVE), 0);
}

TEST_F(ReservedTest, PagesGoBackWithTheSegment) {
  const uint64_t before = CountReservedPages().free;
  ASSERT_TRUE(Segment::Create("test", kBytes, HugePages::kReserved).ok());
  EXPECT_EQ(CountReservedPages().free, before);
}

TEST_F(ReservedTest, ArenaTakesOtherPagesWhenTheyHaveRunOut) {
  auto arena = Arena::Create(64 * kMiB, HugePages::kReserved);
  Options options;
  options.arena = arena;
  ShmFabric fabric(options);
  auto pair = MakePair(&fabric, &fabric);
  ASSERT_NE(pair, nullptr);
  Endpoint* const lender = pair->listening.endpoint.get();
  // Keeps the first payload, so that the second payload finds no room.
  std::vector<memory::Payload> kept;
  for (uint8_t seed : {1, 2}) {
    auto exposure = lender->Expose(PatternPayload(12 * kMiB, seed), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    auto loaded = pair->connecting.endpoint->Load(exposure->region);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(HasPattern(loaded->pieces()[0].span(), seed));
    EXPECT_THAT(lender->Describe(),
                HasSubstr(seed == 1 ? ", 16 of 16 MiB in reserved huge pages"
                                    : ", 16 of 48 MiB in reserved huge pages"));
    kept.push_back(*std::move(loaded));
  }
}

TEST_F(ReservedTest, PeersThatCouldVanishAreRefused) {
  for (int missing : {F_SEAL_SHRINK, F_SEAL_GROW, 0x10, F_SEAL_SEAL}) {
    auto peer = PeerSegment::Map(Memfd(Allocate, kAllSeals & ~missing), kBytes);
    EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << missing;
  }
  EXPECT_TRUE(PeerSegment::Map(Memfd(Allocate), kBytes).ok());
}

TEST_F(ReservedTest, PeersThatAreClaimedButNotAllocatedAreRefused) {
  void* claimed = MAP_FAILED;
  auto peer = PeerSegment::Map(Memfd([&claimed](int fd) {
                                 if (ftruncate(fd, kBytes) != 0) return false;
                                 claimed = mmap(nullptr, kBytes, PROT_READ,
                                                MAP_SHARED, fd, 0);
                                 return claimed != MAP_FAILED;
                               }),
                               kBytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
  munmap(claimed, kBytes);
}

TEST_F(ReservedTest, PeersPagesBehindTheEndDoNotMakeUpForHoles) {
  auto peer = PeerSegment::Map(Memfd([](int fd) {
                                 return ftruncate(fd, kBytes) == 0 &&
                                        fallocate(fd, FALLOC_FL_KEEP_SIZE,
                                                  kBytes, kBytes) == 0;
                               }),
                               kBytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
}

TEST_F(ReservedTest, PeersThatEndWithinAPageAreRefused) {
  constexpr uint64_t kOdd = kBytes + 4096;
  const auto make = [](int fd) { return fallocate(fd, 0, 0, kOdd) == 0; };
  auto peer = PeerSegment::Map(Memfd(make), kOdd);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
  peer = PeerSegment::Map(Memfd(make), kBytes + kHugePageBytes);
  EXPECT_TRUE(absl::IsInvalidArgument(peer.status())) << peer.status();
}

TEST_F(ReservedTest, PeersPagesOfAnotherSizeAreRefused) {
  if (access("/sys/kernel/mm/hugepages/hugepages-1048576kB", F_OK) != 0) {
    GTEST_SKIP() << "this machine has no pages of 1 GiB";
  }
  auto peer = PeerSegment::Map(
      Memfd([](int fd) { return ftruncate(fd, 1024 * kMiB) == 0; }, kAllSeals,
            kOneGiB),
      1024 * kMiB);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
  EXPECT_THAT(std::string(peer.status().message()), HasSubstr("2 MiB"));
}

TEST_F(ReservedTest, PeersOfAnotherSizeThanAnnouncedAreRefused) {
  for (uint64_t announced : {kBytes - kHugePageBytes, kBytes - 1, kBytes + 1,
                             kBytes + kHugePageBytes}) {
    auto peer = PeerSegment::Map(Memfd(Allocate), announced);
    EXPECT_TRUE(absl::IsInvalidArgument(peer.status())) << announced;
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
