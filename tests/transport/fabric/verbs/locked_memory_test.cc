// Tests the limit on locked memory, and the check whether it is high enough.

#include "transport/fabric/verbs/locked_memory.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns true if LockedMemoryLimit() is `bytes` in a child without
// capabilities whose limit is `bytes`.
bool LimitIsSeen(uint64_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    const rlimit limit = {bytes, bytes};
    const bool limited = setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
    const bool dropped = syscall(SYS_capset, &header, none) == 0;
    _exit(limited && dropped && LockedMemoryLimit() == bytes ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(LockedMemoryTest, LimitIsTheSystems) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  // Lowers the limit, which a process may always do.
  EXPECT_TRUE(LimitIsSeen(limit.rlim_max < 65536 ? limit.rlim_max : 65536));
}

TEST(LockedMemoryTest, TooLittleNamesBothRemedies) {
  const absl::Status status = CheckLockedMemory(64 << 10);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  for (const char* part : {"64 KiB", "ulimit -l", "LimitMEMLOCK"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
}

TEST(LockedMemoryTest, UsualLimitsAreEnough) {
  EXPECT_TRUE(CheckLockedMemory(8 << 20).ok());
  EXPECT_TRUE(CheckLockedMemory(kUnlimited).ok());
}

TEST(LockedMemoryTest, CacheLeavesMostOfTheLimit) {
  EXPECT_EQ(CacheBudget(1 << 30, kUnlimited), uint64_t{1} << 30);
  EXPECT_EQ(CacheBudget(1 << 30, 8 << 20), uint64_t{2} << 20);
  EXPECT_EQ(CacheBudget(1 << 20, 8 << 20), uint64_t{1} << 20);
  EXPECT_EQ(CacheBudget(0, kUnlimited), 0u);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
