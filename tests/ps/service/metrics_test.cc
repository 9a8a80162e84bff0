// Tests a server's metrics, and their table in docs/operations.md.

#include "ps/service/metrics.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/replicas.h"
#include "ps/server/server.h"
#include "ps/shards/shards.h"

namespace penstock::ps {
namespace {

TableReport Table(const std::string& name, bool is_sparse) {
  TableReport table;
  table.name = name;
  table.is_sparse = is_sparse;
  table.steps = 10;
  table.bytes = 11;
  table.rows = 12;
  table.spilled_rows = 19;
  table.budget_bytes = 13;
  table.hits = 14;
  table.misses = 15;
  table.evicted_rows = 16;
  table.not_admitted = 17;
  table.refused_pushes = 18;
  table.dropped_gradients = 20;
  return table;
}

ServerReport SomeReport() {
  ServerReport report;
  report.run = 7;
  report.has_values = true;
  report.version = 1;
  report.live_workers = 2;
  report.expected_workers = 3;
  report.workers_lost = 4;
  report.pushes = {5, 6, 7};
  report.held_bytes = 8;
  report.held_bytes_limit = 9;
  report.restored_step = 20;
  report.last_checkpoint_step = 21;
  report.last_checkpoint_age = absl::Seconds(24);
  report.checkpoint_failures = 25;
  report.checkpoint_failures_since = 26;
  report.checkpoints = 27;
  report.checkpoints_bytes = 28;
  report.aside_checkpoints = 29;
  report.aside_checkpoints_bytes = 31;
  report.checkpoint_written_bytes = 22;
  report.checkpoint_total_bytes = 23;
  report.tables = {Table("kernel", false), Table("users", true)};
  report.workers = {{0, 30, true, 0}, {1, 28, true, 2}, {2, 5, false, 25}};
  return report;
}

// Returns the metrics of a report, by name and labels: {"name{label="value"}":
// value}.
std::map<std::string, double> Figures(const ServerReport& report) {
  std::map<std::string, double> figures;
  for (const MetricFamily& family : MetricsOf(report)) {
    for (const MetricFamily::Series& series : family.series) {
      std::vector<std::string> labels;
      for (const auto& [name, value] : series.labels) {
        labels.push_back(absl::StrCat(name, "=", value));
      }
      figures[absl::StrCat(family.name, "{", absl::StrJoin(labels, ","), "}")] =
          series.value;
    }
  }
  return figures;
}

TEST(PsMetricsTest, EachFigureOfTheReportIsThere) {
  std::map<std::string, double> wanted = {
      {"penstock_ps_ready{}", 1},
      {"penstock_ps_failed{}", 0},
      {"penstock_ps_version{}", 1},
      {"penstock_ps_restored_step{}", 20},
      {"penstock_ps_last_checkpoint_step{}", 21},
      {"penstock_ps_last_checkpoint_age_seconds{}", 24},
      {"penstock_ps_checkpoint_failures_total{}", 25},
      {"penstock_ps_checkpoint_failures_in_a_row{}", 26},
      {"penstock_ps_checkpoints{}", 27},
      {"penstock_ps_checkpoints_bytes{}", 28},
      {"penstock_ps_aside_checkpoints{}", 29},
      {"penstock_ps_aside_checkpoints_bytes{}", 31},
      {"penstock_ps_checkpoint_written_bytes{}", 22},
      {"penstock_ps_checkpoint_total_bytes{}", 23},
      {"penstock_ps_workers{}", 2},
      {"penstock_ps_workers_expected{}", 3},
      {"penstock_ps_workers_lost_total{}", 4},
      {"penstock_ps_slowest_worker_behind{}", 2},  // the slowest member
      {"penstock_ps_held_bytes{}", 8},
      {"penstock_ps_held_limit_bytes{}", 9},
      {"penstock_ps_tables{}", 2},
      {"penstock_ps_tables_left_out{}", 0},
      {"penstock_ps_pushes_total{verdict=counted}", 5},
      {"penstock_ps_pushes_total{verdict=not_counted}", 6},
      {"penstock_ps_pushes_total{verdict=refused}", 7}};
  for (const char* of :
       {"{table=kernel,type=dense}", "{table=users,type=sparse}"}) {
    wanted[absl::StrCat("penstock_ps_table_steps_total", of)] = 10;
    wanted[absl::StrCat("penstock_ps_table_bytes", of)] = 11;
    wanted[absl::StrCat("penstock_ps_table_rows", of)] = 12;
  }
  double value = 13;
  for (const char* name :
       {"limit_bytes", "hits_total", "misses_total", "evicted_rows_total",
        "not_admitted_total", "refused_pushes_total"}) {
    wanted[absl::StrCat("penstock_ps_table_", name,
                        "{table=users,type=sparse}")] = value++;
  }
  wanted["penstock_ps_table_spilled_rows{table=users,type=sparse}"] = 19;
  wanted["penstock_ps_table_dropped_gradients_total{table=users,type=sparse}"] =
      20;
  EXPECT_EQ(Figures(SomeReport()), wanted);
}

TEST(PsMetricsTest, AServerWithoutAModelSaysSo) {
  const auto figures = Figures(ServerReport());
  EXPECT_EQ(figures.at("penstock_ps_ready{}"), 0);
  EXPECT_EQ(figures.at("penstock_ps_tables{}"), 0);
  for (const auto& [series, value] : figures) {
    EXPECT_FALSE(absl::StrContains(series, "_table_")) << series;
  }
}

TEST(PsMetricsTest, AFailureIsShown) {
  ServerReport report = SomeReport();
  report.failure = "no memory";
  EXPECT_EQ(Figures(report).at("penstock_ps_failed{}"), 1);
}

TEST(PsMetricsTest, MoreTablesThanAScrapeShowsAreCounted) {
  ServerReport report;
  for (size_t i = 0; i < kMaxTablesInMetrics + 5; ++i) {
    report.tables.push_back(Table(absl::StrCat("table ", i), true));
  }
  const auto figures = Figures(report);
  EXPECT_EQ(figures.at("penstock_ps_tables_left_out{}"), 5);
  EXPECT_EQ(figures.at("penstock_ps_tables{}"), kMaxTablesInMetrics + 5);
  EXPECT_EQ(
      figures.count("penstock_ps_table_rows{table=table 999,type=sparse}"), 1u);
  EXPECT_EQ(
      figures.count("penstock_ps_table_rows{table=table 1000,type=sparse}"),
      0u);
}

std::vector<std::string> DocumentedRows(absl::string_view begin) {
  std::stringstream text;
  text << std::ifstream("docs/operations.md").rdbuf();
  const std::string document = text.str();
  std::vector<std::string> rows;
  for (absl::string_view line : absl::StrSplit(document, '\n')) {
    if (absl::StartsWith(line, begin)) rows.emplace_back(line);
  }
  return rows;
}

std::string RowText(const MetricFamily& family) {
  std::vector<std::string> labels;
  for (const auto& label : family.series[0].labels) {
    labels.push_back(label.first);
  }
  const bool is_counter = family.type == MetricFamily::Type::kCounter;
  return absl::StrCat("| `", family.name, "` | ",
                      is_counter ? "counter" : "gauge", " | ",
                      absl::StrJoin(labels, ", "),
                      labels.empty() ? "| " : " | ", family.help, " |");
}

TEST(PsMetricsDocument, EveryMetricHasItsRowAndNoOtherHasOne) {
  std::vector<std::string> wanted;
  for (const MetricFamily& family : MetricsOf(SomeReport())) {
    wanted.push_back(RowText(family));
  }
  Server own(ForReplica({}));
  ProcessReplicas replicas({}, &own);
  for (const MetricFamily& family : replicas.Metrics()) {
    wanted.push_back(RowText(family));
  }
  EXPECT_EQ(DocumentedRows("| `penstock_ps_"), wanted)
      << "docs/operations.md is to have:\n"
      << absl::StrJoin(wanted, "\n");
}

TEST(PsMetricsDocument, LabelsAreThereWithTheirValues) {
  EXPECT_EQ(DocumentedRows("| verdict | "),
            std::vector<std::string>{"| verdict | `penstock_ps_pushes_total` | "
                                     "`counted`, `not_counted`, `refused` |"});
  EXPECT_EQ(
      DocumentedRows("| type | "),
      std::vector<std::string>{"| type | all with it | `dense`, `sparse` |"});
}

}  // namespace
}  // namespace penstock::ps
