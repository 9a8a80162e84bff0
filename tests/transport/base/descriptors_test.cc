#include "transport/base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

Descriptors Use(int64_t used, int64_t limit) {
  Descriptors now;
  now.free = limit - used;
  now.limit = limit;
  return now;
}

TEST(DescriptorsTest, PathsLeaveThreeEighthsToConnections) {
  EXPECT_TRUE(Use(624, 1000).HasRoomForPath());
  EXPECT_FALSE(Use(625, 1000).HasRoomForPath());
  EXPECT_FALSE(Use(1000, 1000).HasRoomForPath());
  EXPECT_TRUE(Use(0, 20).HasRoomForPath());
}

TEST(DescriptorsTest, PathsAreGivenUpWhereAQuarterIsLeft) {
  EXPECT_EQ(Use(625, 1000).Excess(), 0);
  EXPECT_EQ(Use(749, 1000).Excess(), 0);
  EXPECT_EQ(Use(750, 1000).Excess(), 1);
  EXPECT_EQ(Use(1000, 1000).Excess(), 251);
}

TEST(DescriptorsTest, NoMoreIsKeptThanABurstTakes) {
  EXPECT_TRUE(Use(999615, 1000000).HasRoomForPath());
  EXPECT_FALSE(Use(999616, 1000000).HasRoomForPath());
  EXPECT_EQ(Use(999743, 1000000).Excess(), 0);
  EXPECT_EQ(Use(999744, 1000000).Excess(), 1);
}

TEST(DescriptorsTest, ReasonNamesTheRemedyAndDoesNotVaryWithUse) {
  EXPECT_EQ(Use(1, 100).CheckForPath(), absl::OkStatus());
  const absl::Status status = Use(90, 100).CheckForPath();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(), "ulimit -n")) << status;
  EXPECT_EQ(status, Use(91, 100).CheckForPath());
}

class ProcessDescriptorsTest : public testing::Test {
 protected:
  static constexpr int kLimit = 64;

  ProcessDescriptorsTest() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = kLimit;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (;;) {
      UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!fd.valid()) break;
      opened_.push_back(std::move(fd));
    }
  }
  ~ProcessDescriptorsTest() override { setrlimit(RLIMIT_NOFILE, &before_); }

  rlimit before_;
  std::vector<UniqueFd> opened_;
};

TEST_F(ProcessDescriptorsTest, FreeOnesCountWhereverTheyAre) {
  ASSERT_GT(opened_.size(), 40u);
  EXPECT_EQ(Descriptors::Now().free, 0);
  EXPECT_EQ(Descriptors::Now().limit, kLimit);
  EXPECT_EQ(Descriptors::Now().Excess(), kLimit / 4 + 1);
  // Closes a descriptor in the middle, the lowest one, and the highest one.
  for (size_t i : {size_t{20}, size_t{0}, opened_.size() - 1}) {
    opened_[i].Reset();
  }
  EXPECT_EQ(Descriptors::Now().free, 3);
  EXPECT_FALSE(Descriptors::Now().HasRoomForPath());
  for (size_t i = 1; i < 17; ++i) opened_[i].Reset();
  EXPECT_EQ(Descriptors::Now().free, 19);
  EXPECT_EQ(Descriptors::Now().Excess(), 0);
  EXPECT_FALSE(Descriptors::Now().HasRoomForPath());
  opened_.clear();
  EXPECT_TRUE(Descriptors::Now().HasRoomForPath());
}

TEST_F(ProcessDescriptorsTest, LowLimitLeavesNoneToDoorbells) {
  opened_.clear();
  EXPECT_FALSE(Descriptors::HaveRoomForDoorbell());
}

TEST_F(ProcessDescriptorsTest, HighLimitTakesNoLongLook) {
  opened_.clear();
  rlimit high = before_;
  high.rlim_cur = before_.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &high), 0);
  const Descriptors now = Descriptors::Now();
  EXPECT_TRUE(now.HasRoomForPath());
  EXPECT_LE(now.free, 385);
  EXPECT_TRUE(Descriptors::HaveRoomForDoorbell());
}

}  // namespace
}  // namespace base
}  // namespace penstock
