// Tests rows on a disk that fails for a while. Writes are refused, and no row
// may be lost. Nobody restarts the server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "ps/sparse/tier.h"
#include "ps/tier/disk_tiers.h"
#include "tests/ps/tier/failing_disk.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kRow = 1000;
// The number of rows that a test puts. These rows exceed the memory for waiting
// rows.
constexpr uint64_t kMost = 4000;

std::string RowOf(uint64_t id) {
  std::string row = std::to_string(id);
  row.resize(kRow, 'r');
  return row;
}

class TroubledTierTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/troubled-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    Open(DiskOptions().longest_stall);
  }
  // Opens the tier again. Use a short stall only for a disk that hangs: on a
  // busy machine, a working disk may take a second for a write.
  void Open(absl::Duration longest_stall) {
    tier_.reset();
    tiers_.reset();
    DiskOptions options;
    options.folder = folder_;
    options.memory_bytes = 1 << 20;
    options.longest_stall = longest_stall;
    tiers_ = *DiskTiers::Open(options, &disk_);
    tier_ = tiers_->NewTier();
  }
  void TearDown() override {
    tier_.reset();
    tiers_.reset();
    fs::remove_all(folder_);
  }

  absl::Status Put(uint64_t id) {
    const absl::Status status = tier_->Put({0, id}, RowOf(id));
    if (status.ok()) rows_.insert(id);
    return status;
  }
  // Puts rows until a row is refused. Returns the reason.
  absl::Status PutUntilRefused() {
    absl::Status status;
    for (uint64_t i = 0; i < kMost && status.ok(); ++i) status = Put(next_++);
    return status;
  }
  // Repeats the next row until the tier accepts it.
  void PutInTheEnd() {
    while (!Put(next_).ok()) absl::SleepFor(absl::Milliseconds(1));
    ++next_;
  }
  void PutAgain() {
    PutInTheEnd();
    for (uint64_t i = 0; i < kMost; ++i) {
      const absl::Status status = Put(next_++);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void ExpectRows() {
    std::string row(kRow, 0);
    for (uint64_t id = 0; id < next_; ++id) {
      const auto found = tier_->Get({0, id}, row.data(), row.size());
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(*found, rows_.count(id) > 0) << id;
      ASSERT_TRUE(!*found || row == RowOf(id)) << id;
    }
    EXPECT_EQ(tiers_->bytes(), rows_.size() * kRow);
  }

  std::string folder_;
  FailingDisk disk_;
  std::unique_ptr<DiskTiers> tiers_;
  std::unique_ptr<sparse::Tier> tier_;
  uint64_t next_ = 0;
  std::set<uint64_t> rows_;
};

TEST_F(TroubledTierTest, RefusesUntilTheDiskTakesWrites) {
  for (const int error : {ENOSPC, EDQUOT, EIO}) {
    for (std::atomic<int>* call : {&disk_.create, &disk_.write, &disk_.sync}) {
      *call = error;
      const absl::Status refused = PutUntilRefused();
      EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
      EXPECT_THAT(std::string(refused.message()),
                  HasSubstr(error == EIO ? "the disk fails" : "is full"));
      EXPECT_EQ(tier_->BytesLeft(), 0u);
      EXPECT_FALSE(tier_->ErasedIsRoom());
      ExpectRows();
      *call = 0;
      PutAgain();
      EXPECT_GT(tier_->BytesLeft(), 0u);
      ExpectRows();
    }
  }
}

TEST_F(TroubledTierTest, RowsAreErasedMeanwhile) {
  disk_.write = EIO;
  ASSERT_FALSE(PutUntilRefused().ok());
  for (uint64_t id = 0; id < next_; id += 2) {
    if (rows_.erase(id) == 0) continue;
    ASSERT_TRUE(tier_->Erase({0, id}).ok());
  }
  ExpectRows();
  disk_.write = 0;
  PutAgain();
  ExpectRows();
}

TEST_F(TroubledTierTest, ADiskThatDoesNotAnswerHoldsUpNobodyForLong) {
  constexpr int kCalls = 100;
  Open(absl::Seconds(1));
  disk_.hangs = true;
  absl::Time begin = absl::Now();
  absl::Status refused = PutUntilRefused();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no rows for 1s"));
  EXPECT_GE(absl::Now() - begin, absl::Seconds(1));
  begin = absl::Now();
  for (int i = 0; i < kCalls; ++i) ASSERT_FALSE(Put(next_++).ok());
  // Expects that most calls do not wait. If each call waited, all calls
  // together would take kCalls seconds.
  EXPECT_LT(absl::Now() - begin, absl::Seconds(kCalls) / 2);
  ExpectRows();
  disk_.hangs = false;
  // Lets the disk work again. Writes may still stall for a second now and then.
  for (uint64_t i = 0; i < kMost; ++i) PutInTheEnd();
  ExpectRows();
}

// Tests that another disk works while this one fails, although all databases of
// a process share RocksDB's threads.
TEST_F(TroubledTierTest, AnotherDiskWorksMeanwhile) {
  disk_.write = ENOSPC;
  ASSERT_FALSE(PutUntilRefused().ok());
  DiskOptions options;
  options.folder = folder_ + "/another";
  options.memory_bytes = 1 << 20;
  const auto tiers = *DiskTiers::Open(options);
  const auto tier = tiers->NewTier();
  for (uint64_t id = 0; id < 2 * kMost; ++id) {
    const absl::Status put = tier->Put({0, id}, RowOf(id));
    ASSERT_TRUE(put.ok()) << put;
  }
}

// Tests that the tier can be destroyed without waiting for a failing disk.
TEST_F(TroubledTierTest, EndsWithoutWaitingForTheDisk) {
  disk_.write = ENOSPC;
  ASSERT_FALSE(PutUntilRefused().ok());
  const absl::Time begin = absl::Now();
  tier_.reset();
  tiers_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TroubledTierTest, KeepsRoomForWhatIsNotYetWritten) {
  disk_.free_bytes = uint64_t{1} << 30;
  const uint64_t before = tier_->BytesLeft();
  EXPECT_LT(before, uint64_t{1} << 29);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Put(next_++).ok());
  EXPECT_LT(tier_->BytesLeft(), before);
  disk_.free_bytes = 1000;
  EXPECT_EQ(tier_->BytesLeft(), 0u);
}

// Tests calls that fail at random, with rows that come and go, and compactions.
TEST_F(TroubledTierTest, RandomTroubleLosesNoRow) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::atomic<bool> ends{false};
  std::thread trouble([&, random]() mutable {
    constexpr int kErrors[] = {0, 0, 0, ENOSPC, EDQUOT, EIO};
    while (!ends) {
      disk_.create = random() % 4 == 0 ? kErrors[random() % 6] : 0;
      disk_.write = kErrors[random() % 6];
      disk_.sync = random() % 8 == 0 ? kErrors[random() % 6] : 0;
      disk_.most = random() % 2 == 0 ? SIZE_MAX : random() % 5000 + 1;
      absl::SleepFor(absl::Milliseconds(random() % 20));
    }
    disk_.create = disk_.write = disk_.sync = 0;
    disk_.most = SIZE_MAX;
  });
  next_ = 3000;
  const absl::Time end = absl::Now() + absl::Seconds(5);
  while (absl::Now() < end && !HasFailure()) {
    const uint64_t id = random() % next_;
    if (rows_.count(id) > 0) {
      const absl::Status erased = tier_->Erase({0, id});
      ASSERT_TRUE(erased.ok()) << erased;
      rows_.erase(id);
      continue;
    }
    const absl::Status put = Put(id);
    ASSERT_TRUE(put.ok() || absl::IsResourceExhausted(put)) << put;
  }
  ends = true;
  trouble.join();
  ExpectRows();
  PutAgain();
  ExpectRows();
}

}  // namespace
}  // namespace penstock::ps
