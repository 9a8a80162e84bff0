// Tests that metrics which a program adds are shown for as long as the program
// wants.

#include "transport/monitoring/added.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "transport/monitoring/exposition.h"

namespace penstock {
namespace monitoring {
namespace {

MetricFamily Family(const std::string& name, double value) {
  MetricFamily family;
  family.name = name;
  family.help = "Of a test.";
  family.series = {{{}, value}};
  return family;
}

std::vector<MetricFamily> One() { return {Family("added_by_test", 1)}; }

bool IsShown(const std::string& text) {
  return absl::StrContains(MetricsAsText(), text);
}

TEST(AddedMetricsTest, AreShownUntilTheHandleIsGone) {
  EXPECT_FALSE(IsShown("added_by_test"));
  std::shared_ptr<void> handle = Add(&One);
  std::shared_ptr<void> copy = handle;
  handle.reset();
  EXPECT_TRUE(
      IsShown("# HELP added_by_test Of a test.\n# TYPE added_by_test gauge\n"
              "added_by_test 1\n"));
  // Expects Penstock's own metrics, too.
  EXPECT_TRUE(IsShown("penstock_sessions{"));
  copy.reset();
  EXPECT_FALSE(IsShown("added_by_test"));
}

TEST(AddedMetricsTest, EachAnswerHasTheValuesOfThatTime) {
  std::atomic<int> value{0};
  const std::shared_ptr<void> handle = Add([&] {
    return std::vector<MetricFamily>{Family("added_by_test", ++value)};
  });
  EXPECT_TRUE(IsShown("\nadded_by_test 1\n"));
  EXPECT_TRUE(IsShown("\nadded_by_test 2\n"));
}

TEST(AddedMetricsTest, ValuesOfLabelsAreEscaped) {
  const std::shared_ptr<void> handle = Add([] {
    MetricFamily family;
    family.name = "added_total";
    family.help = "Two\nlines.";
    family.type = MetricFamily::Type::kCounter;
    family.series = {{{{"table", "a\"} 7\nb\\"}}, 3}};
    return std::vector<MetricFamily>{family};
  });
  EXPECT_TRUE(
      IsShown("# HELP added_total Two lines.\n# TYPE added_total counter\n"
              "added_total{table=\"a\\\"} 7\\nb\\\\\"} 3\n"));
}

TEST(AddedMetricsTest, WhatWouldBreakTheFormatIsLeftOut) {
  const std::shared_ptr<void> handle = Add([] {
    std::vector<MetricFamily> families = {
        Family("good_before", 1), Family("", 1),      Family("with blank", 1),
        Family("new\nline", 1),   Family("empty", 1), Family("bad_label", 1)};
    families[4].series.clear();
    families[5].series[0].labels = {{"a-b", "c"}};
    families.push_back(Family("good_after", 1));
    return families;
  });
  const std::string text = MetricsAsText();
  for (const char* part : {"with blank", "new\nline", "empty", "bad_label"}) {
    EXPECT_FALSE(absl::StrContains(text, part)) << part;
  }
  EXPECT_TRUE(absl::StrContains(text, "good_before 1\n"));
  EXPECT_TRUE(absl::StrContains(text, "good_after 1\n"));
}

TEST(AddedMetricsTest, LettingGoWaitsForTheCallThatIsUnderWay) {
  absl::Notification called;
  absl::Notification letting_go;
  std::atomic<bool> has_returned{false};
  std::shared_ptr<void> handle = Add([&] {
    called.Notify();
    letting_go.WaitForNotification();
    // Waits for some time. Meanwhile the destruction of `handle` must not
    // return.
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
    has_returned = true;
    return One();
  });
  std::thread asker([] { EXPECT_TRUE(IsShown("added_by_test")); });
  called.WaitForNotification();
  letting_go.Notify();
  handle.reset();
  EXPECT_TRUE(has_returned);
  asker.join();
}

// Forks while another thread is in a call and holds the lock.
TEST(AddedMetricsTest, TheChildOfAForkShowsItsOwnOnly) {
  absl::Notification called;
  absl::Notification forked;
  std::shared_ptr<void> handle = Add([&] {
    called.Notify();
    forked.WaitForNotification();
    return One();
  });
  std::thread asker([] { EXPECT_TRUE(IsShown("added_by_test")); });
  called.WaitForNotification();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends the child if it waits for the parent's lock
    const bool has_parents = !AddedFamilies().empty();
    handle.reset();
    const std::shared_ptr<void> own = Add(&One);
    _exit(!has_parents && AddedFamilies().size() == 1 ? 0 : 1);
  }
  forked.Notify();
  asker.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace monitoring
}  // namespace penstock
