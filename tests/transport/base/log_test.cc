// Tests which log lines appear on stderr at each log level. A process reads the
// level once, so each case has a process of its own.

#include "transport/base/log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/transport/base/logged.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

// Returns the log of a process with PENSTOCK_LOG=`level`. Null: the variable is
// not set.
std::string LogOf(const char* level) {
  return LoggedBy([level] {
    if (level == nullptr) {
      unsetenv("PENSTOCK_LOG");
    } else {
      setenv("PENSTOCK_LOG", level, 1);
    }
    LogInfo("an info line");
    LogWarning("a warning line");
    LogError("an error line");
  });
}

bool HasInfo(absl::string_view log) {
  return absl::StrContains(log, "an info line");
}
bool HasWarning(absl::string_view log) {
  return absl::StrContains(log, "a warning line");
}
bool HasError(absl::string_view log) {
  return absl::StrContains(log, "an error line");
}

TEST(Log, EachLevelWritesItselfAndWhatIsWorse) {
  const struct {
    const char* level;
    bool info;
    bool warning;
    bool error;
  } kTable[] = {
      {nullptr, true, true, true},    {"", true, true, true},
      {"debug", true, true, true},    {"info", true, true, true},
      {"warning", false, true, true}, {"error", false, false, true},
      {"off", false, false, false},
  };
  for (const auto& row : kTable) {
    SCOPED_TRACE(row.level == nullptr ? "not set" : row.level);
    const std::string log = LogOf(row.level);
    EXPECT_EQ(HasInfo(log), row.info) << log;
    EXPECT_EQ(HasWarning(log), row.warning) << log;
    EXPECT_EQ(HasError(log), row.error) << log;
    EXPECT_FALSE(absl::StrContains(log, "PENSTOCK_LOG")) << log;
  }
}

TEST(Log, OffIsSilent) { EXPECT_EQ(LogOf("off"), ""); }

TEST(Log, LineSaysWhenHowBadAndWho) {
  const std::string log = LogOf("error");
  // The format of a line: 2024-01-31T12:34:56.789Z error penstock[123]: an
  // error line
  const auto digits = [&log](size_t at, size_t count) {
    for (size_t i = at; i < at + count; ++i) {
      if (i >= log.size() || !isdigit(log[i])) return false;
    }
    return true;
  };
  EXPECT_TRUE(digits(0, 4) && log[4] == '-' && digits(11, 2)) << log;
  const size_t at = log.find(" error penstock[");
  ASSERT_EQ(at, 24u) << log;
  EXPECT_EQ(log[23], 'Z') << log;
  const size_t end = log.find("]: an error line\n");
  ASSERT_NE(end, std::string::npos) << log;
  EXPECT_TRUE(digits(at + 16, end - at - 16)) << log;
}

// Tests a misspelled log level. Penstock must still log errors, and must name
// the allowed levels. Names that only the logging library knows also count as
// misspelled.
TEST(Log, MistypedLevelSilencesNoErrorAndSaysWhatIsAllowed) {
  for (const char* level :
       {"wraning", "verbose", "2", "critical", "info ", "debug,info"}) {
    SCOPED_TRACE(level);
    const std::string log = LogOf(level);
    EXPECT_TRUE(HasError(log)) << log;
    EXPECT_TRUE(absl::StrContains(log, "PENSTOCK_LOG")) << log;
    EXPECT_TRUE(absl::StrContains(log, level)) << log;
    for (const char* allowed : {"debug", "info", "warning", "error", "off"}) {
      EXPECT_TRUE(absl::StrContains(log, allowed)) << allowed << ": " << log;
    }
  }
}

TEST(Log, MistypedLevelIsSaidOnce) {
  const std::string log = LogOf("wraning");
  const size_t first = log.find("wraning");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("wraning", first + 1), std::string::npos) << log;
}

// Tests a level in capitals. Penstock may accept or reject it, but must log
// errors in both cases.
TEST(Log, CapitalLevelSilencesNoError) {
  for (const char* level : {"INFO", "Error", "WARNING"}) {
    EXPECT_TRUE(HasError(LogOf(level))) << level;
  }
}

TEST(Log, TextOfOthersForgesNoLineAndSpeaksToNoTerminal) {
  const std::string log = LoggedBy([] {
    LogInfo("from\n2024-01-31 error penstock[1]: \x1b[2J\xc2\x9b\r");
    LogInfo(std::string(1 << 20, 'x'));
  });
  EXPECT_TRUE(absl::StrContains(log, R"(from\x0a2024)")) << log;
  EXPECT_TRUE(absl::StrContains(log, R"(\x1b[2J\xc2\x9b\x0d)")) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_LT(log.size(), 2 * kMaxLogLineBytes);
}

TEST(Log, AFileWithoutRoomDoesNotEndTheProgram) {
  const std::string path = testing::TempDir() + "/full-log";
  const UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  RunWithStderr(file.get(), [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    LogError("an error line");
  });
}

// Tests the child of a fork. At the fork, one thread of the parent writes a
// line, and another thread holds the C library's time zone lock.
TEST(Log, ForkedChildHasALogOfItsOwn) {
  const std::string log = LoggedBy([] {
    std::atomic<bool> done{false};
    std::thread busy([&done] {
      while (!done) LogInfo("of the parent");
    });
    std::thread clock([&done] {
      tm local;
      for (time_t now = 0; !done; ++now) localtime_r(&now, &local);
    });
    for (int i = 0; i < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(10);
        LogError("of a child");
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) _exit(1);
    }
    done = true;
    busy.join();
    clock.join();
  });
  size_t children = 0;
  for (size_t at = 0; (at = log.find("of a child", at)) != log.npos; ++at) {
    ++children;
  }
  EXPECT_EQ(children, 20u);
}

}  // namespace
}  // namespace base
}  // namespace penstock
