#include "cli/top/parameter_server.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/top/figures.h"
#include "cli/top/table.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr char kReady[] = "penstock_ps_ready";
constexpr char kPushes[] = "penstock_ps_pushes_total";
constexpr char kTableBytes[] = "penstock_ps_table_bytes";
constexpr size_t kMaxTables = 20;
constexpr int kNameColumns = 26;

// Returns the tables by their labels, the largest first.
std::vector<Series> LargestTables(const Sample& after) {
  std::vector<Series> tables = after.metrics.All(kTableBytes);
  std::stable_sort(tables.begin(), tables.end(),
                   [](const Series& left, const Series& right) {
                     return left.value > right.value;
                   });
  return tables;
}

std::string LabelOf(const Series& series, const std::string& name) {
  const auto found = series.labels.find(name);
  return found == series.labels.end() ? "" : found->second;
}

std::string StateText(const Rates& rates) {
  if (rates.Now("penstock_ps_failed") > 0) return "training has ended";
  return rates.Now(kReady) > 0 ? "serving" : "waits for a model and its values";
}

// Returns a line about checkpoints. Returns "" if this server has completed no
// checkpoint, and none failed.
std::string CheckpointsText(const Rates& rates) {
  const double step = rates.Now("penstock_ps_last_checkpoint_step");
  const double failures = rates.Now("penstock_ps_checkpoint_failures_in_a_row");
  if (step == 0 && failures == 0) return "";
  std::string text = "checkpoints: ";
  if (step > 0) {
    absl::StrAppend(&text, "step ", Count(step), ", ",
                    Count(rates.Now("penstock_ps_last_checkpoint_age_seconds")),
                    " s ago");
  } else {
    text += "none";
  }
  if (failures > 0)
    absl::StrAppend(&text, "; ", Count(failures), " FAILED since");
  return text + "\n";
}

std::string Summary(const Rates& rates) {
  const auto pushes = [&](const char* verdict) {
    return Count(rates.PerSecond(kPushes, {{"verdict", verdict}}));
  };
  return absl::StrCat(
      StateText(rates), ", version ", Count(rates.Now("penstock_ps_version")),
      "\nworkers: ", Count(rates.Now("penstock_ps_workers")), " of ",
      Count(rates.Now("penstock_ps_workers_expected")), ", ",
      Count(rates.Now("penstock_ps_workers_lost_total")), " lost, the slowest ",
      Count(rates.Now("penstock_ps_slowest_worker_behind")),
      " steps behind\npushes: ", pushes("counted"), "/s, ",
      pushes("not_counted"), "/s late or repeated, ", pushes("refused"),
      "/s refused\ngradients held: ",
      Bytes(rates.Now("penstock_ps_held_bytes")), " of ",
      Bytes(rates.Now("penstock_ps_held_limit_bytes")), "\n",
      CheckpointsText(rates));
}

std::string TableRow(const Rates& rates, const Series& series,
                     const Table& table) {
  const Labels& labels = series.labels;
  const double hits = rates.PerSecond("penstock_ps_table_hits_total", labels);
  const double misses =
      rates.PerSecond("penstock_ps_table_misses_total", labels);
  const bool is_sparse = LabelOf(series, "type") == "sparse";
  return table.Row(
      {base::Printable(LabelOf(series, "table"), kNameColumns),
       base::Printable(LabelOf(series, "type"), 6),
       Count(rates.Now("penstock_ps_table_steps_total", labels)),
       Count(rates.PerSecond("penstock_ps_table_steps_total", labels)),
       Count(rates.Now("penstock_ps_table_rows", labels)), Bytes(series.value),
       Percent(hits, hits + misses),
       is_sparse ? Count(rates.PerSecond("penstock_ps_table_evicted_rows_total",
                                         labels))
                 : "-"});
}

std::string Tables(const Rates& rates, const Sample& after, const Output& out) {
  const Table table({{"table", -kNameColumns},
                     {"type", -6, 2},
                     {"steps", 8, 1},
                     {"steps/s", 8},
                     {"rows", 8, 3},
                     {"bytes", 10},
                     {"hits", 5, 4},
                     {"evicted/s", 9, 5}},
                    out.width());
  const std::vector<Series> tables = LargestTables(after);
  if (tables.empty()) return "";
  std::string text = absl::StrCat("\n", table.Header());
  for (size_t i = 0; i < std::min(tables.size(), kMaxTables); ++i) {
    text += TableRow(rates, tables[i], table);
  }
  const double all = rates.Now("penstock_ps_tables");
  if (all > static_cast<double>(kMaxTables)) {
    absl::StrAppend(&text, "and ", Count(all - kMaxTables), " smaller ones\n");
  }
  return text + table.LeftOut();
}

}  // namespace

std::string ParameterServerText(const Rates& rates, const Sample& after,
                                const Output& out) {
  if (!after.metrics.Has(kReady)) return "";
  return absl::StrCat("\n", out.Styled(Style::kBold, "Parameter server"), "\n",
                      Summary(rates), Tables(rates, after, out));
}

json ParameterServerJson(const Rates& rates, const Sample& after) {
  if (!after.metrics.Has(kReady)) return json();
  json server = {
      {"ready", rates.Now(kReady) > 0},
      {"failed", rates.Now("penstock_ps_failed") > 0},
      {"version", rates.Now("penstock_ps_version")},
      {"workers", rates.Now("penstock_ps_workers")},
      {"workers_expected", rates.Now("penstock_ps_workers_expected")},
      {"workers_lost", rates.Now("penstock_ps_workers_lost_total")},
      {"slowest_worker_behind", rates.Now("penstock_ps_slowest_worker_behind")},
      {"held_bytes", rates.Now("penstock_ps_held_bytes")},
      {"held_limit_bytes", rates.Now("penstock_ps_held_limit_bytes")},
      {"last_checkpoint_step", rates.Now("penstock_ps_last_checkpoint_step")},
      {"last_checkpoint_age_seconds",
       rates.Now("penstock_ps_last_checkpoint_age_seconds")},
      {"checkpoint_failures_in_a_row",
       rates.Now("penstock_ps_checkpoint_failures_in_a_row")}};
  for (const std::string verdict : {"counted", "not_counted", "refused"}) {
    server["pushes_" + verdict + "_per_second"] =
        rates.PerSecond(kPushes, {{"verdict", verdict}});
  }
  server["tables"] = json::array();
  for (const Series& each : LargestTables(after)) {
    json table = {{"table", LabelOf(each, "table")},
                  {"type", LabelOf(each, "type")},
                  {"bytes", each.value}};
    for (const std::string name : {"steps", "hits", "misses", "evicted_rows"}) {
      table[name + "_per_second"] = rates.PerSecond(
          absl::StrCat("penstock_ps_table_", name, "_total"), each.labels);
    }
    table["steps"] = rates.Now("penstock_ps_table_steps_total", each.labels);
    table["rows"] = rates.Now("penstock_ps_table_rows", each.labels);
    server["tables"].push_back(std::move(table));
  }
  return server;
}

}  // namespace penstock::cli
