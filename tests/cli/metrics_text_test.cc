// Tests parsing and comparing the metrics of a process, for penstock top.

#include "cli/top/metrics_text.h"

#include <cmath>
#include <string>

#include "absl/strings/str_split.h"
#include "cli/top/sample.h"
#include "cli/top/view.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

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
  // Expects that after a restart all observations count as new.
  EXPECT_EQ(QuantileBetween(at(50, 50, 50), at(0, 3, 3), 0.5), 2);
  EXPECT_EQ(QuantileBetween({}, {}, 0.5), 0);
}

// Returns a process with one connection that has sent `messages` messages.
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
  // Expects that a peer's name is escaped before it reaches the terminal.
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
    // Expects that the most important columns are always shown.
    for (const char* part : {"sent B/s", "peer", "call p50"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << text;
    }
  }
}

// Returns a parameter server whose tables have made `steps` steps.
Sample Server(int seconds, int steps) {
  const std::string count = std::to_string(steps);
  Sample sample = After(seconds, 0);
  sample.metrics =
      Parsed("penstock_ps_ready 1\npenstock_ps_version " + count +
             "\npenstock_ps_workers 3\npenstock_ps_workers_expected 4\n"
             "penstock_ps_slowest_worker_behind 17\npenstock_ps_tables 2\n"
             "penstock_ps_pushes_total{verdict=\"counted\"} " +
             count +
             "\npenstock_ps_held_limit_bytes 4096\n"
             "penstock_ps_table_bytes{table=\"bias\",type=\"dense\"} 16\n"
             "penstock_ps_table_bytes{table=\"us\x1b"
             "ers\",type=\"sparse\"} 2048\n"
             "penstock_ps_table_rows{table=\"us\x1b"
             "ers\",type=\"sparse\"} 77\n"
             "penstock_ps_table_hits_total{table=\"us\x1b"
             "ers\",type=\"sparse\"} " +
             std::to_string(3 * steps) +
             "\npenstock_ps_table_misses_total{table=\"us\x1b"
             "ers\",type=\"sparse\"} " +
             count +
             "\npenstock_ps_table_steps_total{table=\"bias\",type=\"dense\"} " +
             count + "\n");
  return sample;
}

TEST(ViewTest, TheTablesOfAParameterServerAreBelowItsConnections) {
  const Output out(-1, Display());
  const std::string text = ViewText(Server(10, 1000), Server(12, 1500), out);
  const size_t begin = text.find("Parameter server\n");
  ASSERT_NE(begin, std::string::npos) << text;
  EXPECT_GT(begin, text.find("Connections")) << text;
  for (const char* part :
       {"serving, version 1500\n", "workers: 3 of 4", "slowest 17 steps",
        "pushes: 250/s, 0/s", "gradients held: 0 B of 4 KiB",
        "\nus\\x1bers                  sparse        0        0       77    "
        "  2 KiB   75%         0\n",
        "\nbias                       dense      1500      250        0       "
        "16 B     -         -\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_LT(text.find("us\\x1bers"), text.find("\nbias")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(ViewText(After(10, 1), After(12, 2), out).find("Parameter"),
            std::string::npos);
}

TEST(ViewTest, TheTablesFitANarrowTerminal) {
  for (const size_t width : {60, 80}) {
    Display display;
    display.width = width;
    Sample after = Server(12, 1500);
    after.has_connections = false;
    const std::string text =
        ViewText(Server(10, 1000), after, Output(-1, display));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(line.size(), width) << line;
    }
    EXPECT_NE(text.find("steps/s"), std::string::npos) << text;
  }
}

TEST(ViewTest, JsonHasTheTables) {
  const auto view = nlohmann::json::parse(
      ViewJson(Server(10, 1000), Server(12, 1500), absl::UnixEpoch()));
  const auto& server = view["parameter_server"];
  EXPECT_EQ(server["pushes_counted_per_second"], 250);
  ASSERT_EQ(server["tables"].size(), 2u);
  EXPECT_EQ(server["tables"][0]["table"],
            "us\x1b"
            "ers");
  EXPECT_EQ(server["tables"][0]["misses_per_second"], 250);
  EXPECT_EQ(server["tables"][1]["steps"], 1500);
  EXPECT_EQ(nlohmann::json::parse(
                ViewJson(After(10, 1), After(12, 2), absl::UnixEpoch()))
                .count("parameter_server"),
            0u);
}

TEST(ViewTest, WhatBecameLessIsNoRate) {
  const Output out(-1, Display());
  const std::string text = ViewText(After(10, 3000), After(12, 1000), out);
  EXPECT_NE(text.find("shm              1        0 "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace penstock::cli
