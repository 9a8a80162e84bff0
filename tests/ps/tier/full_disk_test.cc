// Rows on a disk that is full. RocksDB's threads are of the mount namespace in
// which the first database was opened, so this is a program of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <iostream>
#include <string>

#include "ps/tier/disk_tiers.h"

namespace penstock::ps {
namespace {

constexpr size_t kRow = 1000;

std::string RowOf(uint64_t id) {
  std::string row = std::to_string(id);
  row.resize(kRow, 'r');
  return row;
}

// Whoever has no right to mount skips it, and says so.
TEST(FullDiskTest, HasNoRoomAndLosesNothing) {
  DiskOptions options;
  options.memory_bytes = 1 << 20;
  options.folder = testing::TempDir() + "/full-XXXXXX";
  ASSERT_NE(mkdtemp(options.folder.data()), nullptr);
  if (unshare(CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", options.folder.c_str(), "tmpfs", 0, "size=8m") != 0) {
    std::cout << "SKIPPED: no mount namespace here: no full disk was tried\n";
    GTEST_SKIP() << "unshare or mount is not permitted";
  }
  const auto tiers = *DiskTiers::Open(options);
  const auto tier = tiers->NewTier();
  uint64_t rows = 0;
  absl::Status status;
  for (; rows < 20000 && status.ok(); rows += status.ok()) {
    status = tier->Put({0, rows}, RowOf(rows));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("the disk is full"));
  EXPECT_GT(rows, 3000u);
  for (uint64_t id = 0; id < rows; ++id) {
    std::string row(kRow, 0);
    const auto found = tier->Get({0, id}, row.data(), row.size());
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(*found && row == RowOf(id)) << id;
  }
}

}  // namespace
}  // namespace penstock::ps
