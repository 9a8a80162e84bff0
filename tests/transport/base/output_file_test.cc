#include "transport/base/output_file.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

// Returns a file that has no room for a byte.
UniqueFd Full() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_FSIZE, &none);
  return *OpenOutputFile(absl::StrCat(testing::TempDir(), "/full-", getpid()),
                         "write");
}

bool IsPending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGXFSZ) == 1;
}

bool IsBlocked() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, SIGXFSZ) == 1;
}

int handled = 0;

[[noreturn]] void WriteBlocked(bool handles) {
  const UniqueFd file = Full();
  if (handles) signal(SIGXFSZ, [](int) { ++handled; });
  bool failed = false;
  {
    const FileSizeSignalBlock block;
    failed = write(file.get(), "x", 1) == -1 && errno == EFBIG;
  }
  if (!failed || IsPending() || IsBlocked() || handled != 0) _exit(1);
  (void)!write(file.get(), "x", 1);  // written by the program itself
  _exit(handled == 1 ? 0 : 2);
}

TEST(FileSizeSignalBlockTest, OnlyWritesWithinItRaiseNoSignal) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(WriteBlocked(false), testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_EXIT(WriteBlocked(true), testing::ExitedWithCode(0), "");
}

[[noreturn]] void WriteWithOnePending() {
  const UniqueFd file = Full();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  raise(SIGXFSZ);
  {
    const FileSizeSignalBlock block;
    (void)!write(file.get(), "x", 1);
  }
  _exit(IsPending() && IsBlocked() ? 0 : 1);
}

TEST(FileSizeSignalBlockTest, ASignalThatTheProgramHoldsBackStays) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(WriteWithOnePending(), testing::ExitedWithCode(0), "");
}

TEST(WriteErrorTest, NamesTheLimit) {
  EXPECT_EQ(WriteError(EFBIG).message(),
            "write: the file is larger than the limit on file sizes: raise it "
            "(ulimit -f, RLIMIT_FSIZE)");
  EXPECT_EQ(WriteError(ENOSPC).message(),
            "write: No space left on device: free some space, or name a file "
            "on another disk");
}

}  // namespace
}  // namespace base
}  // namespace penstock
