// Tests a peer's segments. They are mapped once, checked where they are used,
// and unmapped when the peer takes them back.

#include "transport/fabric/shm/lent_segment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/borrower.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL;

base::UniqueFd Duplicate(int fd) {
  return base::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// Returns the file of a dishonest peer. The last MiB has no pages, but as many
// pages lie beyond the end. The number of pages is therefore right.
base::UniqueFd WithHoleAtTheEnd(uint64_t size) {
  base::UniqueFd fd(memfd_create("liar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  const auto allocated = static_cast<off_t>(size - kMiB);
  EXPECT_EQ(fallocate(fd.get(), 0, 0, allocated), 0);
  EXPECT_EQ(
      fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size), kMiB),
      0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, kAllSeals), 0);
  return fd;
}

size_t CountMappings(const std::string& name) {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    count += absl::StrContains(line, "memfd:" + name);
  }
  return count;
}

// Stops all tasks that other threads run aside (progress::RunAside()), for the
// lifetime of the object.
class HeldAside {
 public:
  HeldAside() {
    auto shared = std::make_shared<std::future<void>>(go_on_.get_future());
    progress::RunAside(progress::Aside::kMemory, [shared] { shared->wait(); });
  }
  ~HeldAside() { go_on_.set_value(); }

 private:
  std::promise<void> go_on_;
};

TEST(LentSegment, SameMemoryIsMappedOnceAndLetGoWithItsLastUser) {
  auto owned = Segment::Create("once", 4 * kMiB);
  auto one = LentSegment::Get(Duplicate(owned->fd()), 4 * kMiB).value();
  auto two = LentSegment::Get(Duplicate(owned->fd()), 4 * kMiB).value();
  EXPECT_EQ(one, two);
  EXPECT_EQ(CountMappings("once"), 2u);  // the other mapping is the owner's
  one.reset();
  owned->data()[5] = 7;
  EXPECT_EQ(two->data()[5], 7);
  two.reset();
  EXPECT_TRUE(WaitUntil([] { return CountMappings("once") == 1; }));
  auto again = LentSegment::Get(Duplicate(owned->fd()), 4 * kMiB);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->data()[5], 7);
}

TEST(LentSegment, KeepsNoDescriptorOnceAllIsLookedThrough) {
  auto owned = Segment::Create("test", 8 * kMiB);
  EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
  const size_t before = CountFds();
  auto lent = LentSegment::Get(Duplicate(owned->fd()), 8 * kMiB).value();
  EXPECT_TRUE(WaitUntil([before] { return CountFds() == before; }));
  EXPECT_TRUE(lent->Check(0, 8 * kMiB).ok());
}

TEST(LentSegment, OnlyWhatIsUsedIsLookedThroughByItsUser) {
  HeldAside held;
  auto lent = LentSegment::Get(WithHoleAtTheEnd(8 * kMiB), 8 * kMiB).value();
  EXPECT_TRUE(lent->Check(0, 6 * kMiB).ok());
  EXPECT_TRUE(lent->Check(6 * kMiB, 0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(lent->Check(6 * kMiB - 1, 2)));
  // Expects that this process no longer uses the dishonest peer's memory.
  EXPECT_TRUE(absl::IsFailedPrecondition(lent->Check(0, 1)));
}

TEST(LentSegment, TheRestIsLookedThroughAside) {
  auto lent = LentSegment::Get(WithHoleAtTheEnd(8 * kMiB), 8 * kMiB).value();
  EXPECT_TRUE(WaitUntil([&] { return !lent->Check(0, 1).ok(); }));
}

TEST(LentSegment, WhatCouldVanishIsRefused) {
  base::UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), kMiB), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      LentSegment::Get(Duplicate(fd.get()), kMiB).status()));
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kAllSeals), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(  // the range has no pages
      LentSegment::Get(Duplicate(fd.get()), kMiB).status()));
  auto good = Segment::Create("test", kMiB);
  EXPECT_TRUE(absl::IsInvalidArgument(
      LentSegment::Get(Duplicate(good->fd()), 2 * kMiB).status()));
}

// A fixture in which the test is the lending peer.
class Lends : public testing::Test {
 protected:
  void Say(SetupMessage::Kind kind, uint32_t id, uint64_t size, int fd) {
    SetupMessage message;
    message.kind = kind;
    message.segment_id = id;
    message.size = size;
    ASSERT_TRUE(SendSetup(peer_->socket.get(), message, fd).ok());
  }
  void Lend(uint32_t id, const Segment& segment) {
    Say(SetupMessage::Kind::kSegment, id, segment.size(), segment.fd());
  }
  void TakeBack(uint32_t id) { Say(SetupMessage::Kind::kTakeBack, id, 0, -1); }
  absl::StatusOr<memory::Payload> Load(uint32_t id) {
    return peer_->end.endpoint->Load({{RegionKey(id, 1), 0, 4096}});
  }

  ShmFabric fabric_;
  std::unique_ptr<RawPair> peer_ = MakeRawPair(&fabric_);
};

TEST_F(Lends, SegmentsComeInAndGoWithoutBeingAskedFor) {
  auto owned = Segment::Create("unasked", kMiB);
  Lend(7, *owned);
  EXPECT_TRUE(WaitUntil([] { return CountMappings("unasked") == 2; }));
  TakeBack(7);
  EXPECT_TRUE(WaitUntil([] { return CountMappings("unasked") == 1; }));
  EXPECT_FALSE(Load(7).ok());
  Lend(7, *owned);  // the number can be used again
  EXPECT_TRUE(Load(7).ok());
}

TEST_F(Lends, LoadedBytesOutliveASegmentThatALiarTakesBack) {
  auto owned = Segment::Create("liar", kMiB);
  owned->data()[0] = 5;
  Lend(7, *owned);
  auto bytes = Load(7);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  TakeBack(7);
  EXPECT_TRUE(WaitUntil([this] { return !Load(7).ok(); }));
  EXPECT_EQ(bytes->pieces()[0].data[0], 5);
  bytes = memory::Payload();
  EXPECT_TRUE(WaitUntil([] { return CountMappings("liar") == 1; }));
}

TEST_F(Lends, OneMemoryUnderManyNumbersIsMappedOnce) {
  auto owned = Segment::Create("many", kMiB);
  for (uint32_t id = 1; id <= kMaxPeerSegments; ++id) Lend(id, *owned);
  EXPECT_TRUE(Load(kMaxPeerSegments).ok());
  EXPECT_EQ(CountMappings("many"), 2u);
  Lend(kMaxPeerSegments + 1, *owned);  // one segment more than is allowed
  EXPECT_FALSE(Load(kMaxPeerSegments + 1).ok());
  EXPECT_TRUE(Load(1).ok());
}

TEST_F(Lends, TakingBackWhatWasNotLentHarmsNobody) {
  auto owned = Segment::Create("test", kMiB);
  TakeBack(3);
  Lend(7, *owned);
  (void)Load(7);
  EXPECT_TRUE(Load(7).ok());
  EXPECT_TRUE(peer_->end.events.broken.empty());
}

// Lends memory and gets it back. Afterwards both sides must have only the first
// segment again.
TEST(GiveBack, IdleSegmentsGoOnBothSides) {
  Options options;
  options.arena = Arena::Create(256 * kMiB, HugePages::kOff,
                                /*idle_time=*/absl::Milliseconds(1));
  ShmFabric fabric(options);
  auto pair = MakePair(&fabric, &fabric);
  ASSERT_NE(pair, nullptr);
  Endpoint* const lender = pair->listening.endpoint.get();
  for (int round = 0; round < 3; ++round) {
    {
      std::vector<memory::Payload> loaded;
      for (uint8_t i = 0; i < 6; ++i) {
        auto exposure = lender->Expose(PatternPayload(12 * kMiB, i), 1);
        ASSERT_TRUE(exposure.ok()) << exposure.status();
        auto bytes = pair->connecting.endpoint->Load(exposure->region);
        ASSERT_TRUE(bytes.ok()) << bytes.status();
        EXPECT_TRUE(HasPattern(bytes->pieces()[0].span(), i));
        loaded.push_back(*std::move(bytes));
      }
      EXPECT_GT(options.arena->reserved(), 64 * kMiB);
    }
    lender->Poll();
    EXPECT_TRUE(
        WaitUntil([&] { return options.arena->reserved() == 16 * kMiB; }));
    EXPECT_TRUE(WaitUntil([] { return CountMappings("penstock-arena") == 2; }));
  }
  EXPECT_TRUE(pair->listening.events.broken.empty());
  EXPECT_TRUE(pair->connecting.events.broken.empty());
}

// A segment whose owner has died. Each byte is the number of its page.
struct DeadOwners {
  explicit DeadOwners(const char* name, uint64_t size = 8 * kMiB) {
    auto owned = Segment::Create(name, size);
    for (uint64_t i = 0; i < size; ++i) {
      owned->data()[i] = static_cast<uint8_t>(i / 4096);
    }
    fd = Duplicate(owned->fd());
    segment = LentSegment::Get(Duplicate(owned->fd()), size).value();
  }

  // Returns true if the bytes of a range are those that the owner has written.
  bool IsWhole(uint64_t offset, uint64_t length) const {
    for (uint64_t i = offset; i < offset + length; ++i) {
      if (segment->data()[i] != static_cast<uint8_t>(i / 4096)) return false;
    }
    return true;
  }

  // Returns the number of bytes of the segment in memory, shared or not.
  uint64_t ResidentBytes() const {
    std::vector<unsigned char> pages(segment->size() / 4096);
    EXPECT_EQ(mincore(const_cast<uint8_t*>(segment->data()), segment->size(),
                      pages.data()),
              0);
    uint64_t bytes = 0;
    for (const unsigned char page : pages) bytes += (page & 1) * 4096;
    return bytes;
  }

  base::UniqueFd fd;
  std::shared_ptr<LentSegment> segment;
};

TEST(LentSegment, OfTheDeadOnlyWhatIsReadIsKept) {
  DeadOwners dead("dead");
  LentSegment::Loan one;
  LentSegment::Loan two;
  one.Begin(dead.segment, 5000, 64 * 1024);
  two.Begin(dead.segment, 8 * kMiB - 100, 100);
  dead.fd.Reset();
  EXPECT_EQ(CountMappings("dead"), 1u);
  dead.segment->RemoveUser();
  ASSERT_TRUE(WaitUntil([] { return CountMappings("dead") == 0; }));
  EXPECT_TRUE(dead.IsWhole(5000, 64 * 1024));
  EXPECT_TRUE(dead.IsWhole(8 * kMiB - 100, 100));
  EXPECT_LE(dead.ResidentBytes(), 64u * 1024 + 3 * 4096);
}

TEST(LentSegment, PrivateRangesGoWithTheirLastLoan) {
  DeadOwners dead("dead");
  LentSegment::Loan stays;
  stays.Begin(dead.segment, 6000, 8000);
  {
    LentSegment::Loan goes;
    goes.Begin(dead.segment, 0, kMiB);
    dead.segment->RemoveUser();
    ASSERT_TRUE(WaitUntil([] { return CountMappings("dead") == 0; }));
    EXPECT_EQ(dead.ResidentBytes(), kMiB);
  }
  EXPECT_EQ(dead.ResidentBytes(), 3u * 4096);
  EXPECT_TRUE(dead.IsWhole(6000, 8000));
}

TEST(LentSegment, WhatIsReadNearlyAllIsNotCopied) {
  DeadOwners dead("dead");
  LentSegment::Loan stays;
  stays.Begin(dead.segment, 4096, 4096);
  {
    LentSegment::Loan most;
    most.Begin(dead.segment, 0, 7 * kMiB);
    dead.segment->RemoveUser();
    EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
    EXPECT_EQ(CountMappings("dead"), 1u);
  }
  EXPECT_TRUE(WaitUntil([] { return CountMappings("dead") == 0; }));
  EXPECT_TRUE(dead.IsWhole(4096, 4096));
}

TEST(LentSegment, WhileAnybodyLendsFromItEverythingStays) {
  auto owned = Segment::Create("lives", 8 * kMiB);
  auto one = LentSegment::Get(Duplicate(owned->fd()), 8 * kMiB).value();
  auto two = LentSegment::Get(Duplicate(owned->fd()), 8 * kMiB).value();
  LentSegment::Loan loan;
  loan.Begin(one, 0, 4096);
  one->RemoveUser();
  EXPECT_TRUE(WaitUntil([] { return progress::TasksAside() == 0; }));
  owned->data()[5 * kMiB] = 7;
  EXPECT_EQ(two->data()[5 * kMiB], 7);
}

TEST(LentSegment, WhatWasLetGoOfIsMappedAnew) {
  auto owned = Segment::Create("again", 8 * kMiB);
  auto one = LentSegment::Get(Duplicate(owned->fd()), 8 * kMiB).value();
  LentSegment::Loan loan;
  loan.Begin(one, 0, 4096);
  one->RemoveUser();
  auto two = LentSegment::Get(Duplicate(owned->fd()), 8 * kMiB).value();
  EXPECT_NE(one, two);
  owned->data()[5 * kMiB] = 7;
  EXPECT_EQ(two->data()[5 * kMiB], 7);
}

// Reads while the bytes move from the segment to the copy. At each moment, the
// bytes must be readable.
TEST(LentSegment, ReadersDoNotNoticeTheCopy) {
  for (int round = 0; round < 20; ++round) {
    DeadOwners dead("dead", 2 * kMiB);
    LentSegment::Loan loan;
    loan.Begin(dead.segment, 0, kMiB);
    std::atomic<bool> done{false};
    std::thread reader([&] {
      while (!done) ASSERT_TRUE(dead.IsWhole(0, kMiB));
    });
    dead.segment->RemoveUser();
    EXPECT_TRUE(WaitUntil([] { return CountMappings("dead") == 0; }));
    done = true;
    reader.join();
    dead.fd.Reset();
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
