// Tests log lines that a peer causes while nobody reads stderr.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/base/logged.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/log.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

constexpr int kFlood = 4 * kLogBurst;

void LogFlood() {
  for (int i = 0; i < kFlood; ++i) {
    LogInfo(absl::StrCat("line ", i, " ", std::string(100, 'x')));
  }
}

TEST(LogFlood, IsCutToABurst) {
  const std::string log = LoggedBy(LogFlood);
  const auto lines = std::count(log.begin(), log.end(), '\n');
  EXPECT_GE(lines, kLogBurst);
  EXPECT_LT(lines, 2 * kLogBurst);
}

TEST(LogFlood, OfInformationHidesNoError) {
  const std::string log = LoggedBy([] {
    LogFlood();
    LogError("what matters");
  });
  EXPECT_TRUE(absl::StrContains(log, "what matters"));
}

TEST(LogFlood, IsCountedInALineOfItsOwn) {
  const std::string log = LoggedBy([] {
    LogFlood();
    MoveSteadyClockBy(absl::Seconds(1));
    LogInfo("after it");
  });
  EXPECT_TRUE(absl::StrContains(log, " lines were left out")) << log;
  EXPECT_TRUE(absl::StrContains(log, "after it")) << log;
}

// A fixture with a pipe or a socket. A child's stderr is the writing end; only
// some tests read the other end.
class StderrTest : public testing::Test {
 protected:
  void OpenPipe() {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    reading_.Reset(ends[0]);
    writing_.Reset(ends[1]);
  }
  void OpenSocket() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    reading_.Reset(ends[0]);
    writing_.Reset(ends[1]);
  }

  void ExpectLineIsRead() {
    RunWithStderr(writing_.get(), [] { LogInfo("a line"); });
    char text[1000];
    const ssize_t size = read(reading_.get(), text, sizeof text);
    ASSERT_GT(size, 0);
    EXPECT_TRUE(absl::StrContains(absl::string_view(text, size), "a line"));
  }
  // Checks that logging threads finish although stderr is full.
  void ExpectFloodsEnd() {
    RunWithStderr(writing_.get(), LogFlood);
    RunWithStderr(writing_.get(), LogFlood);
  }

  UniqueFd reading_;
  UniqueFd writing_;
};

TEST_F(StderrTest, PipeGetsTheLines) {
  OpenPipe();
  ExpectLineIsRead();
}

TEST_F(StderrTest, SocketGetsTheLines) {
  OpenSocket();
  ExpectLineIsRead();
}

TEST_F(StderrTest, PipeThatNobodyReadsHoldsUpNobody) {
  OpenPipe();
  ExpectFloodsEnd();
  // Expects that other writers of the pipe still block.
  EXPECT_EQ(fcntl(writing_.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(StderrTest, SocketThatNobodyReadsHoldsUpNobody) {
  OpenSocket();
  ExpectFloodsEnd();
}

TEST_F(StderrTest, PipeThatCannotBeOpenedAnewHoldsUpNobodyEither) {
  OpenPipe();
  RunWithStderr(writing_.get(), [] {
    const rlimit none = {1, 1};  // no descriptor is left; poll() takes one
    setrlimit(RLIMIT_NOFILE, &none);
    LogFlood();
  });
  char text[100];
  EXPECT_GT(read(reading_.get(), text, sizeof text), 0);
}

}  // namespace
}  // namespace base
}  // namespace penstock
