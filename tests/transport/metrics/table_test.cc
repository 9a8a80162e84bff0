// Tests the rules for each row of the table of metrics.

#include "transport/metrics/table.h"

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "transport/metrics/snapshot.h"

namespace penstock {
namespace metrics {
namespace {

bool IsName(absl::string_view text) {
  for (const char c : text) {
    if (!std::islower(c) && !std::isdigit(c) && c != '_') return false;
  }
  return !text.empty() && !std::isdigit(text[0]);
}

TEST(MetricsTable, NamesFollowPrometheusConventions) {
  std::set<std::string> names;
  for (const Row& row : Table()) {
    const std::string name = row.name;
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
    EXPECT_TRUE(IsName(name) && absl::StartsWith(name, "penstock_")) << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), row.type == Type::kCounter)
        << name;
    EXPECT_EQ(absl::StrContains(name, "_bytes"), row.unit == Unit::kBytes)
        << name;
    EXPECT_EQ(absl::StrContains(name, "_seconds"), row.unit == Unit::kSeconds)
        << name;
  }
}

TEST(MetricsTable, EachHelpIsASentenceOfOneLine) {
  for (const Row& row : Table()) {
    const std::string help = row.help;
    EXPECT_TRUE(std::isupper(help[0]) && help.back() == '.') << row.name;
    EXPECT_FALSE(absl::StrContains(help, "\n") || absl::StrContains(help, "|"))
        << row.name;
  }
}

TEST(MetricsTable, OnlyWhatLastsIsMergedByAddition) {
  for (const Row& row : Table()) {
    if (row.type != Type::kGauge) {
      EXPECT_EQ(row.merge, Merge::kSum) << row.name;
    }
  }
}

// Tests that the number of series of each metric is bounded.
TEST(MetricsTable, SeriesAreFew) {
  int lines = 0;
  for (const Row& row : Table()) {
    EXPECT_LE(row.series(), 100) << row.name;
    lines += row.series() * row.cells();
  }
  EXPECT_LE(lines, 1000);
}

TEST(MetricsTable, LabelsHaveDifferentNamesWithinARow) {
  for (const Row& row : Table()) {
    std::set<absl::string_view> names;
    for (const Label label : row.labels) {
      EXPECT_TRUE(IsName(NameOf(label)));
      EXPECT_TRUE(names.insert(NameOf(label)).second) << row.name;
      for (absl::string_view value : ValuesOf(label)) {
        EXPECT_TRUE(IsName(value)) << value;
      }
    }
  }
}

TEST(MetricsTable, EachSeriesHasLabelsOfItsOwn) {
  for (const Row& row : Table()) {
    std::set<std::vector<absl::string_view>> seen;
    for (int i = 0; i < row.series(); ++i) {
      EXPECT_TRUE(seen.insert(LabelValues(row, i)).second) << row.name;
    }
  }
}

// Tests that each enum has as many texts as values, which are in different
// files.
TEST(MetricsTable, TheLastOfEachEnumHasItsText) {
  EXPECT_EQ(ValuesOf(Label::kRole).back(), "server");
  EXPECT_EQ(PathOf("http2"), Path::kHttp2);
  EXPECT_EQ(FabricOf("verbs"), Fabric::kVerbs);
  EXPECT_EQ(FabricOf("\n"), Fabric::kOther);
  const auto last = [](Value value) {
    return static_cast<int>(ValuesOf(value.label).size()) - 1 == value.index;
  };
  EXPECT_TRUE(last(Role::kServer));
  EXPECT_TRUE(last(Path::kOther));
  EXPECT_TRUE(last(Fabric::kOther));
  EXPECT_TRUE(last(Kind::kAnnounced));
  EXPECT_TRUE(last(Direction::kReceived));
  EXPECT_TRUE(last(Reason::kFlood));
  EXPECT_TRUE(last(Refusal::kVersion));
  EXPECT_TRUE(last(End::kError));
  EXPECT_TRUE(last(Budget::kRead));
  EXPECT_TRUE(last(Pool::kVerbs));
  EXPECT_TRUE(last(Completion::kOther));
}

TEST(Snapshot, MergesAsTheTableSays) {
  Snapshot snapshot;
  for (const uint64_t value : {5, 0, 3, 9}) {
    snapshot.Add(Metric::kEagerLimitMin, {Fabric::kShm}, value);
    snapshot.Add(Metric::kEagerLimitMax, {Fabric::kShm}, value);
    snapshot.Add(Metric::kStreams, {Role::kClient}, value);
  }
  EXPECT_EQ(snapshot.Get(Metric::kEagerLimitMin, {Fabric::kShm}), 3u);
  EXPECT_EQ(snapshot.Get(Metric::kEagerLimitMax, {Fabric::kShm}), 9u);
  EXPECT_EQ(snapshot.Get(Metric::kStreams, {Role::kClient}), 17u);
  EXPECT_EQ(snapshot.Get(Metric::kStreams, {Role::kServer}), 0u);
}

// Tests labels that the metric does not have. In a build with assertions, they
// end the program.
TEST(Snapshot, LabelsThatTheMetricDoesNotHaveCountNowhere) {
#ifdef NDEBUG
  Snapshot snapshot;
  snapshot.Add(Metric::kStreams, {Fabric::kShm}, 1);
  snapshot.Add(Metric::kStreams, {}, 1);
  snapshot.Add(Metric::kStreams, {Role::kClient, Fabric::kShm}, 1);
  for (size_t i = 0; i < CellCount(); ++i) EXPECT_EQ(snapshot.cell(i), 0u);
#else
  GTEST_SKIP() << "built with assertions";
#endif
}

}  // namespace
}  // namespace metrics
}  // namespace penstock
