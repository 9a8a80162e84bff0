// Tests rows on a full disk. RocksDB's threads belong to the mount namespace in
// which the first database was opened, so this test has its own program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "ps/sparse/tier.h"
#include "ps/tier/disk_tiers.h"

namespace penstock::ps {
namespace {

constexpr size_t kRow = 1000;

std::string RowOf(uint64_t id) {
  std::string row = std::to_string(id);
  row.resize(kRow, 'r');
  return row;
}

// Tests with a tier on its own disk of 8 MiB, which is full of rows with ids
// from 0.
class FullDiskTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    may_mount_ = unshare(CLONE_NEWNS) == 0 &&
                 mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }

  // Mounts a small disk. A user without the right to mount skips the test, with
  // a message.
  void SetUp() override {
    DiskOptions options;
    options.memory_bytes = 1 << 20;
    options.folder = testing::TempDir() + "/full-XXXXXX";
    ASSERT_NE(mkdtemp(options.folder.data()), nullptr);
    folder_ = options.folder;
    if (!may_mount_ ||
        mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=8m") != 0) {
      std::cout << "SKIPPED: no mount namespace here: no full disk was tried\n";
      GTEST_SKIP() << "unshare or mount is not permitted";
    }
    tiers_ = *DiskTiers::Open(options);
    tier_ = tiers_->NewTier();
    absl::Status status;
    for (; rows_ < 20000 && status.ok(); rows_ += status.ok()) {
      status = tier_->Put({0, rows_}, RowOf(rows_));
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("the disk is full"));
    EXPECT_GT(rows_, 3000u);
  }

  // Expects that the tier has exactly the rows for which `is_there(id)` is
  // true.
  template <typename IsThere>
  void ExpectRows(const IsThere& is_there) {
    std::string row(kRow, 0);
    std::set<std::string> all;
    for (uint64_t id = 0; id < rows_; ++id) {
      const auto found = tier_->Get({0, id}, row.data(), row.size());
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(*found, is_there(id)) << id;
      if (!*found) continue;
      ASSERT_EQ(row, RowOf(id));
      all.insert(row);
    }
    EXPECT_EQ(tiers_->bytes(), all.size() * kRow);
    const auto walk = *tier_->Begin();
    while (*walk->Next(row.data(), row.size())) {
      ASSERT_EQ(all.erase(row), 1u) << row.substr(0, 10);
    }
    EXPECT_TRUE(all.empty());
  }

  static bool may_mount_;
  std::string folder_;
  std::unique_ptr<DiskTiers> tiers_;
  std::unique_ptr<sparse::Tier> tier_;
  uint64_t rows_ = 0;
};

bool FullDiskTest::may_mount_ = false;

TEST_F(FullDiskTest, HasNoRoomAndLosesNothing) {
  ExpectRows([](uint64_t) { return true; });
}

// Tests rows that are read back from a full disk, and written there again when
// there is room.
TEST_F(FullDiskTest, RowsAreErasedAllTheSame) {
  for (uint64_t id = 0; id < rows_; id += 2) {
    const absl::Status erased = tier_->Erase({0, id});
    ASSERT_TRUE(erased.ok()) << erased;
  }
  bool is_back = false;
  const auto is_there = [&](uint64_t id) {
    return id % 2 == 1 || (is_back && id == 2);
  };
  ExpectRows(is_there);
  is_back = tier_->Put({0, 2}, RowOf(2)).ok();
  ExpectRows(is_there);
  ASSERT_EQ(mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"),
            0);
  for (; !is_back; is_back = tier_->Put({0, 2}, RowOf(2)).ok()) {
    std::this_thread::yield();
  }
  ExpectRows(is_there);
  for (uint64_t id = 0; id < rows_; id += 2) {
    ASSERT_TRUE(id == 2 || tier_->Put({0, id}, RowOf(id)).ok());
  }
  ExpectRows([](uint64_t) { return true; });
}

TEST_F(FullDiskTest, ADatabaseThatHasNoRoomIsNotOpened) {
  DiskOptions options;
  options.folder = folder_ + "/another";
  options.memory_bytes = 1 << 20;
  while (true) {
    const std::string piece = folder_ + "/piece-XXXXXX";
    std::string path = piece;
    const int file = mkstemp(path.data());
    if (file < 0) break;
    const std::string bytes(4096, 'b');
    const ssize_t written = write(file, bytes.data(), bytes.size());
    close(file);
    if (written < 0) break;
  }
  const absl::Status refused = DiskTiers::Open(options).status();
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(testing::HasSubstr("rows on disk: "),
                             testing::HasSubstr("No space left on device")));
  ExpectRows([](uint64_t) { return true; });
}

}  // namespace
}  // namespace penstock::ps
