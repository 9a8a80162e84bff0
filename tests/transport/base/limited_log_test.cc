#include "transport/base/limited_log.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/base/logged.h"
#include "transport/base/log.h"

namespace penstock {
namespace base {
namespace {

long Lines(const std::string& log) {  // NOLINT: what std::count gives
  return std::count(log.begin(), log.end(), '\n');
}

TEST(LimitedLog, OneConnectionLogsAFewLines) {
  const std::string log = LoggedBy([] {
    LimitedLog limited;
    for (int i = 0; i < 100 * 1000; ++i) limited.Info("path");
    LogInfo("of another connection");
  });
  EXPECT_GE(Lines(log), 10);
  EXPECT_LT(Lines(log), 20);
  EXPECT_TRUE(absl::StrContains(log, "of another connection")) << log;
}

TEST(LimitedLog, LastLineAndTheCountComeInTheEnd) {
  const std::string log = LoggedBy([] {
    LimitedLog limited;
    for (int i = 1; i <= 100; ++i) limited.Info(absl::StrCat("path ", i, "."));
  });
  EXPECT_TRUE(absl::StrContains(log, "path 10.")) << log;
  EXPECT_FALSE(absl::StrContains(log, "path 11.")) << log;
  EXPECT_TRUE(
      absl::StrContains(log, "(89 lines before this left out) path 100."))
      << log;
}

TEST(LimitedLog, WarningsKeepTheirLevel) {
  const std::string log = LoggedBy([] {
    LimitedLog limited;
    for (int i = 0; i < 100; ++i) limited.Warning("a stranger");
  });
  EXPECT_EQ(Lines(log), 11) << log;  // the burst, and the final line
  EXPECT_TRUE(absl::StrContains(log, "(89 lines before this left out)")) << log;
  EXPECT_FALSE(absl::StrContains(log, " info ")) << log;
}

TEST(WarnOfStranger, AllThreadsShareAFewLines) {
  const std::string log = LoggedBy([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int j = 0; j < 1000; ++j) WarnOfStranger("a stranger");
      });
    }
    for (std::thread& thread : threads) thread.join();
    LogWarning("the program's own");
  });
  EXPECT_GE(Lines(log), 2);
  EXPECT_LE(Lines(log), 12) << log;
  EXPECT_TRUE(absl::StrContains(log, "the program's own")) << log;
}

TEST(LimitedLog, WithinTheLimitNothingIsAdded) {
  const std::string log = LoggedBy([] {
    LimitedLog limited;
    limited.Info("one");
  });
  EXPECT_EQ(Lines(log), 1) << log;
  EXPECT_FALSE(absl::StrContains(log, "left out")) << log;
}

}  // namespace
}  // namespace base
}  // namespace penstock
