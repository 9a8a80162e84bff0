#include "transport/base/program_start.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace penstock {
namespace base {
namespace {

void Limit(rlim_t bytes) {
  const rlimit limit = {bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

TEST(ProgramStartTest, AnAbortWithLimitedAddressSpaceNamesTheLimit) {
  const auto abort_limited = [] {
    Limit(rlim_t{3} << 30);
    PrepareProgram("program");
    abort();
  };
  EXPECT_EXIT(abort_limited(), testing::KilledBySignal(SIGABRT),
              "program: aborted, .* limited to 3145728 KiB; raise ulimit -v");
}

TEST(ProgramStartTest, AnAbortWithoutALimitPrintsNothing) {
  const auto abort_unlimited = [] {
    Limit(RLIM_INFINITY);
    PrepareProgram("program");
    abort();
  };
  EXPECT_EXIT(abort_unlimited(), testing::KilledBySignal(SIGABRT), "^$");
}

TEST(ProgramStartTest, WritingToAClosedDescriptorGoesOnFailing) {
  const auto write_closed = [] {
    close(STDOUT_FILENO);
    PrepareProgram("program");
    const int next = open("/dev/null", O_WRONLY);
    const bool fails = write(STDOUT_FILENO, "x", 1) < 0 && errno == EBADF;
    _exit(next > STDERR_FILENO && fails ? 0 : 1);
  };
  EXPECT_EXIT(write_closed(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace base
}  // namespace penstock
