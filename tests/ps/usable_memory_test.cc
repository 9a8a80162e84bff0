#include "ps/usable_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::ps {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class UsableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/root-XXXXXX";
    ASSERT_NE(mkdtemp(&root_[0]), nullptr);
    Write("/proc/meminfo", "MemTotal:        1048576 kB\nMemFree: 1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(UsableMemoryTest, WithoutALimitItIsTheMachines) {
  EXPECT_EQ(UsableMemory(root_), 1024 * kMiB);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(UsableMemory(root_), 1024 * kMiB);
}

TEST_F(UsableMemoryTest, TheLowestLimitAboveTheProcessCounts) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/memory.max", "536870912\n");
  EXPECT_EQ(UsableMemory(root_), 512 * kMiB);
  Write("/sys/fs/cgroup/memory.max", "268435456\n");  // a container's
  EXPECT_EQ(UsableMemory(root_), 256 * kMiB);
}

TEST_F(UsableMemoryTest, SoDoThoseOfVersion1) {
  Write("/proc/self/cgroup", "5:cpu:/y\n4:hugetlb,memory:/x\n0::/\n");
  Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "134217728\n");
  EXPECT_EQ(UsableMemory(root_), 128 * kMiB);
  // Write a large number, which means "no limit" in version 1 of control
  // groups.
  Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
        "9223372036854771712\n");
  EXPECT_EQ(UsableMemory(root_), 1024 * kMiB);
}

TEST(DefaultLimitsTest, TogetherTheyAreWhatTheProcessMayUse) {
  for (const uint64_t usable : {64 * kMiB, 1000 * kMiB, uint64_t{1} << 42}) {
    const MemoryLimits limits = DefaultLimits(usable);
    EXPECT_EQ(limits.dense + limits.sparse + limits.held_gradients +
                  limits.held_answers,
              usable);
    for (const uint64_t each : {limits.dense, limits.sparse,
                                limits.held_gradients, limits.held_answers}) {
      EXPECT_GE(each, usable / 8);
    }
  }
}

TEST(LimitsTextTest, NamesTheFlags) {
  MemoryLimits limits{1 << 30, 0, 3 << 20, 5 << 10};
  std::string text = LimitsText(limits);
  EXPECT_EQ(text.substr(0, text.find(';')),
            "limits of memory: --memory=1 GiB, --sparse-memory=0 (none), "
            "--held-gradients=3 MiB, --held-answers=5 KiB");
  limits.sparse = 2 << 20;
  text = LimitsText(limits);
  EXPECT_NE(text.find("--sparse-memory=2 MiB,"), std::string::npos) << text;
}

TEST_F(UsableMemoryTest, OfThisMachineItIsSomething) {
  EXPECT_GT(UsableMemory(), 16 * kMiB);
  EXPECT_LT(UsableMemory(), uint64_t{1} << 48);
}

}  // namespace
}  // namespace penstock::ps
