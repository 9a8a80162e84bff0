// What penstock top reads of a process, and what it makes of two looks at it.

#include "cli/top/metrics_text.h"

#include <cmath>
#include <string>

#include "absl/strings/str_split.h"
#include "cli/top/sample.h"
#include "cli/top/view.h"
#include "gtest/gtest.h"

namespace penstock::cli {
namespace {

MetricsText Parsed(const std::string& text) {
  absl::StatusOr<MetricsText> parsed = MetricsText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *std::move(parsed) : MetricsText();
}

TEST(MetricsTextTest, SeriesAreSummedByTheirLabels) {
  const MetricsText text = Parsed(
      "# HELP a Something.\n# TYPE a counter\r\n"
      "a{path=\"shm\",kind=\"eager\"} 1\na{path=\"shm\",kind=\"announced\"} 2\n"
      "a{path=\"tcp\",kind=\"eager\"} 4 1700000000\n\nb 8e-1\n");
  EXPECT_EQ(text.Sum("a"), 7);
  EXPECT_EQ(text.Sum("a", {{"path", "shm"}}), 3);
  EXPECT_EQ(text.Sum("a", {{"path", "shm"}, {"kind", "eager"}}), 1);
  EXPECT_EQ(text.Sum("a", {{"path", "verbs"}}), 0);
  EXPECT_EQ(text.Sum("b"), 0.8);
  EXPECT_TRUE(text.Has("b"));
  EXPECT_FALSE(text.Has("c"));
}

TEST(MetricsTextTest, LabelsMayHoldAnything) {
  const MetricsText text = Parsed("a{b=\"x\\\"}, \\\\ \\n{\",c=\"\"} 3\n");
  ASSERT_EQ(text.All("a").size(), 1u);
  EXPECT_EQ(text.All("a")[0].labels.at("b"), "x\"}, \\ \n{");
  EXPECT_EQ(text.All("a")[0].labels.at("c"), "");
}

TEST(MetricsTextTest, WhatIsNoneIsRefused) {
  for (const char* text :
       {"a", "a b", " a 1", "{} 1", "a{b=\"c\" 1", "a{b=\"c} 1", "a{b=c} 1",
        "a{b=\"c\\", "a{,} 1", "a 1 2 3", "a{b=\"c\"}", "<html>", "\xff"}) {
    EXPECT_FALSE(MetricsText::Parse(text).ok()) << text;
  }
  EXPECT_TRUE(MetricsText::Parse("").ok());
}

TEST(MetricsTextTest, QuantilesAreOfWhatWasObservedInBetween) {
  const auto at = [](int first, int second, int all) {
    return Parsed("h_bucket{le=\"1\"} " + std::to_string(first) +
                  "\nh_bucket{le=\"2\"} " + std::to_string(second) +
                  "\nh_bucket{le=\"+Inf\"} " + std::to_string(all) + "\n")
        .Buckets("h");
  };
  EXPECT_EQ(QuantileBetween(at(100, 100, 100), at(100, 110, 110), 0.5), 2);
  EXPECT_EQ(QuantileBetween(at(0, 0, 0), at(99, 99, 100), 0.99), 1);
  EXPECT_TRUE(std::isinf(QuantileBetween(at(0, 0, 0), at(9, 9, 10), 0.99)));
  EXPECT_EQ(QuantileBetween(at(5, 5, 5), at(5, 5, 5), 0.5), 0);
  // Started anew: all of it is new.
  EXPECT_EQ(QuantileBetween(at(50, 50, 50), at(0, 3, 3), 0.5), 2);
  EXPECT_EQ(QuantileBetween({}, {}, 0.5), 0);
}

// A process with one connection that has sent so many messages.
Sample After(int seconds, int messages) {
  const std::string count = std::to_string(messages);
  Sample sample;
  sample.time = absl::UnixEpoch() + absl::Seconds(seconds);
  sample.metrics = Parsed(
      "penstock_sessions{role=\"client\",path=\"shm\"} 1\n"
      "penstock_messages_total{path=\"shm\",direction=\"sent\"} " +
      count + "\npenstock_paths_lost_total{path=\"shm\"} 1\n");
  sample.has_connections = true;
  metrics::ConnectionInfo connection;
  connection.id = 7;
  connection.role = metrics::Role::kClient;
  connection.path = "shm";
  connection.peer = "ipv4:\x1b[31m";
  connection.messages_sent = messages;
  sample.connections.push_back(connection);
  return sample;
}

TEST(ViewTest, RatesAreDifferencesOverTime) {
  const Output out(-1, Display());
  const std::string text = ViewText(After(10, 1000), After(12, 3000), out);
  EXPECT_NE(text.find("shm              1     1000 "), std::string::npos)
      << text;
  EXPECT_NE(text.find("fast paths lost: 1 (0/s)"), std::string::npos) << text;
  // What a peer is called does not reach the terminal as it is.
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(ViewJson(After(10, 1000), After(12, 3000), absl::UnixEpoch())
                .find('\x1b'),
            std::string::npos);
}

TEST(ViewTest, NarrowTerminalsGetTheColumnsThatFit) {
  const Sample before = After(10, 1000);
  Sample after = After(12, 3000);
  after.connections[0].reason = std::string(3, 'r');
  for (int i = 0; i < 20; ++i) after.connections[0].reason += " reason";
  for (const size_t width : {60, 80, 109}) {
    Display display;
    display.width = width;
    const std::string text = ViewText(before, after, Output(-1, display));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(line.size(), width) << line;
    }
    EXPECT_EQ(text.find("no room for: ") == std::string::npos, width == 109)
        << text;
    // What matters most is there in any case.
    for (const char* part : {"sent B/s", "peer", "call p50"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << text;
    }
  }
}

TEST(ViewTest, WhatBecameLessIsNoRate) {
  const Output out(-1, Display());
  const std::string text = ViewText(After(10, 3000), After(12, 1000), out);
  EXPECT_NE(text.find("shm              1        0 "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace penstock::cli
