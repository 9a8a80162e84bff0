// Tests percentiles of many times, and their display.

#include "cli/ping_table.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/histogram.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {
namespace {

TEST(HistogramTest, PercentilesAreRightToTwoPercent) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(10, 3);  // 22 us, with a long tail
  std::vector<int64_t> all;
  Histogram histogram;
  for (int i = 0; i < 100000; ++i) {
    all.push_back(static_cast<int64_t>(times(random)));
    histogram.Add(absl::Nanoseconds(all.back()));
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(histogram.count(), all.size());
  EXPECT_EQ(histogram.min(), absl::Nanoseconds(all.front()));
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(all.back()));
  for (const double quantile : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double wanted =
        static_cast<double>(all[static_cast<size_t>(quantile * 100000) - 1]);
    const double got = absl::ToDoubleNanoseconds(histogram.Quantile(quantile));
    EXPECT_NEAR(got, wanted, 0.02 * wanted + 1) << quantile;
  }
}

TEST(HistogramTest, ExtremesAreKept) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), absl::ZeroDuration());
  histogram.Add(absl::Nanoseconds(-5));  // a clock that was set back
  EXPECT_EQ(histogram.min(), absl::ZeroDuration());
  histogram.Add(absl::Hours(24 * 365 * 200));
  histogram.Add(absl::InfiniteDuration());
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(INT64_MAX));
}

TEST(HistogramTest, OneTimeIsEveryPercentile) {
  Histogram histogram;
  histogram.Add(absl::Nanoseconds(123457));
  EXPECT_EQ(histogram.Quantile(0.5), absl::Nanoseconds(123457));
  EXPECT_EQ(histogram.Quantile(0.99), absl::Nanoseconds(123457));
}

PingSummary Summary() {
  PingSummary summary;
  summary.target = "ps0:50051";
  summary.path = "shm";
  summary.series.resize(2);
  summary.series[0].bytes = 8;
  summary.series[0].times.Add(absl::Microseconds(12));
  summary.series[1].bytes = 1024;
  summary.series[1].failed = 2;
  return summary;
}

TEST(SummaryTest, ASizeWithoutAnAnswerHasNoTimes) {
  const Output out(1, {false, 80});
  const std::string text = SummaryText(Summary(), out);
  EXPECT_NE(text.find("1 of 3 calls answered"), std::string::npos) << text;
  EXPECT_NE(text.find("none came back"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(SummaryJson(Summary()));
  EXPECT_EQ(json["sizes"][0]["p50_us"], 12.0);
  EXPECT_FALSE(json["sizes"][1].contains("p50_us"));
  EXPECT_EQ(json["sizes"][1]["failed"], 2);
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

// Returns a summary with the widest usual cells.
PingSummary WideSummary() {
  PingSummary summary = Summary();
  summary.series[1].bytes = 1023 << 10;
  summary.detail = "rxe1/1, GID 1, RoCE v2, mtu 4096, to 10.9.0.2, staged";
  summary.reason = "verbs: no RDMA device here; shm: peer is on another host";
  summary.calls = "its health service; payload goes there only";
  for (int i = 0; i < 5; ++i) {
    summary.series[1].times.Add(absl::Microseconds(1234 * (i + 1)));
  }
  return summary;
}

TEST(SummaryTest, ATerminalOf60ColumnsHasRoomForAllOfIt) {
  const Output out(1, {false, 60, 60});
  const std::string text = SummaryText(WideSummary(), out);
  EXPECT_LE(LongestLine(text), 60U) << text;
  for (const char* name : {"min", "p50", "p90", "p99", "max"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(text.find("no room"), std::string::npos) << text;
  const std::string before = IntroductionText(WideSummary(), out);
  EXPECT_LE(LongestLine(before), 60U) << before;
}

TEST(SummaryTest, ANarrowTerminalIsToldWhatIsLeftOut) {
  const std::string text =
      SummaryText(WideSummary(), Output(1, {false, 40, 40}));
  EXPECT_LE(LongestLine(text), 40U) << text;
  EXPECT_NE(text.find("p50"), std::string::npos) << text;
  EXPECT_NE(text.find("no room for: min"), std::string::npos) << text;
}

TEST(SummaryTest, TheLastErrorIsInTheJson) {
  PingSummary summary = Summary();
  EXPECT_FALSE(nlohmann::json::parse(SummaryJson(summary)).contains("error"));
  summary.error = "Socket closed";
  EXPECT_EQ(nlohmann::json::parse(SummaryJson(summary))["error"],
            "Socket closed");
}

TEST(SummaryTest, TextThatIsNoUnicodeIsStillJson) {
  PingSummary summary = Summary();
  summary.target = "\xff\xfe";
  EXPECT_FALSE(nlohmann::json::parse(SummaryJson(summary)).empty());
}

}  // namespace
}  // namespace penstock::cli
