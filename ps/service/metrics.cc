#include "ps/service/metrics.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock::ps {
namespace {

using Type = MetricFamily::Type;

constexpr Type kGauge = Type::kGauge;
constexpr Type kCounter = Type::kCounter;

double LargestLag(const ServerReport& report) {
  uint64_t largest = 0;
  for (const WorkerReport& worker : report.workers) {
    if (worker.is_member) largest = std::max(largest, worker.behind);
  }
  return static_cast<double>(largest);
}

double TablesLeftOut(const ServerReport& report) {
  const size_t tables = report.tables.size();
  return static_cast<double>(tables - std::min(tables, kMaxTablesInMetrics));
}

struct ServerFigure {
  const char* name;
  Type type;
  const char* help;
  double (*of)(const ServerReport&);
};

constexpr ServerFigure kServerFigures[] = {
    {"penstock_ps_ready", kGauge,
     "1 if the server has a model and its values, else 0.",
     [](const ServerReport& all) { return all.has_values ? 1.0 : 0.0; }},
    {"penstock_ps_failed", kGauge,
     "1 if training has ended because a step could not be applied, else 0.",
     [](const ServerReport& all) { return all.failure.empty() ? 0.0 : 1.0; }},
    {"penstock_ps_version", kGauge,
     "Steps that the synchronous tables have taken.",
     [](const ServerReport& all) { return double(all.version); }},
    {"penstock_ps_restored_step", kGauge,
     "The checkpoint that the server began with; 0: none.",
     [](const ServerReport& all) { return double(all.restored_step); }},
    {"penstock_ps_last_checkpoint_step", kGauge,
     "The checkpoint that this process has completed last; 0: none. The first "
     "server of a training completes them.",
     [](const ServerReport& all) { return double(all.last_checkpoint_step); }},
    {"penstock_ps_last_checkpoint_age_seconds", kGauge,
     "Time since this process has completed a checkpoint; 0: none.",
     [](const ServerReport& all) {
       return absl::ToDoubleSeconds(all.last_checkpoint_age);
     }},
    {"penstock_ps_checkpoint_failures_total", kCounter,
     "Checkpoints that have failed. The first server counts them.",
     [](const ServerReport& all) { return double(all.checkpoint_failures); }},
    {"penstock_ps_checkpoint_failures_in_a_row", kGauge,
     "Checkpoints that have failed since the last good one.",
     [](const ServerReport& all) {
       return double(all.checkpoint_failures_since);
     }},
    {"penstock_ps_checkpoints", kGauge,
     "Checkpoints in the folder, after the last good one.",
     [](const ServerReport& all) { return double(all.checkpoints); }},
    {"penstock_ps_checkpoints_bytes", kGauge,
     "Size of the checkpoints in the folder.",
     [](const ServerReport& all) { return double(all.checkpoints_bytes); }},
    {"penstock_ps_aside_checkpoints", kGauge,
     "Folders aside-STEP-NUMBER of checkpoints that a restore has set aside. "
     "Only an operator removes them.",
     [](const ServerReport& all) { return double(all.aside_checkpoints); }},
    {"penstock_ps_aside_checkpoints_bytes", kGauge, "Size of those folders.",
     [](const ServerReport& all) {
       return double(all.aside_checkpoints_bytes);
     }},
    {"penstock_ps_checkpoint_written_bytes", kGauge,
     "Of the checkpoint that is being written, or was written last, what this "
     "server has written of its values and rows.",
     [](const ServerReport& all) {
       return double(all.checkpoint_written_bytes);
     }},
    {"penstock_ps_checkpoint_total_bytes", kGauge,
     "How many such bytes there are; too many at first in an incremental one. "
     "0: none is being written.",
     [](const ServerReport& all) {
       return double(all.checkpoint_total_bytes);
     }},
    {"penstock_ps_workers", kGauge, "Workers that are members.",
     [](const ServerReport& all) { return double(all.live_workers); }},
    {"penstock_ps_workers_expected", kGauge,
     "Workers that the start waits for.",
     [](const ServerReport& all) { return double(all.expected_workers); }},
    {"penstock_ps_workers_lost_total", kCounter,
     "Workers that died, stopped sending heartbeats or were superseded.",
     [](const ServerReport& all) { return double(all.workers_lost); }},
    {"penstock_ps_slowest_worker_behind", kGauge,
     "Steps by which the slowest member is behind the fastest worker.",
     &LargestLag},
    {"penstock_ps_held_bytes", kGauge, "Gradients that are not applied yet.",
     [](const ServerReport& all) { return double(all.held_bytes); }},
    {"penstock_ps_held_limit_bytes", kGauge,
     "How many such bytes there may be before pushes are refused.",
     [](const ServerReport& all) { return double(all.held_bytes_limit); }},
    {"penstock_ps_tables", kGauge, "Tables of the model.",
     [](const ServerReport& all) { return double(all.tables.size()); }},
    {"penstock_ps_tables_left_out", kGauge,
     "Tables of which the metrics of tables say nothing: there are too many.",
     &TablesLeftOut}};

struct TableFigure {
  const char* name;
  const char* help;
  uint64_t TableReport::*of;
  Type type;
  bool is_of_sparse_only;
};

constexpr TableFigure kTableFigures[] = {
    {"penstock_ps_table_steps_total",
     "Steps of the optimizer, with those before a restore.",
     &TableReport::steps, kCounter, false},
    {"penstock_ps_table_bytes", "Memory that the table takes here.",
     &TableReport::bytes, kGauge, false},
    {"penstock_ps_table_rows", "Rows that are here.", &TableReport::rows,
     kGauge, false},
    {"penstock_ps_table_spilled_rows", "Of those rows, the ones on disk.",
     &TableReport::spilled_rows, kGauge, true},
    {"penstock_ps_table_limit_bytes",
     "Memory that a sparse table may take here.", &TableReport::budget_bytes,
     kGauge, true},
    {"penstock_ps_table_hits_total",
     "Ids that were pulled or pushed and had a row.", &TableReport::hits,
     kCounter, true},
    {"penstock_ps_table_misses_total",
     "Ids that were pulled or pushed and had none.", &TableReport::misses,
     kCounter, true},
    {"penstock_ps_table_evicted_rows_total",
     "Rows that were removed to make room, or since nobody used them.",
     &TableReport::evicted_rows, kCounter, true},
    {"penstock_ps_table_not_admitted_total",
     "Ids that got no row since they had not been seen often enough.",
     &TableReport::not_admitted, kCounter, true},
    {"penstock_ps_table_refused_pushes_total",
     "Pushes for which the table had no room.", &TableReport::refused_pushes,
     kCounter, true},
    {"penstock_ps_table_dropped_gradients_total",
     "Ids whose gradient was lost after its push had been acknowledged.",
     &TableReport::dropped_gradients, kCounter, true}};

MetricFamily PushesOf(const PushCounts& counts) {
  MetricFamily family;
  family.name = "penstock_ps_pushes_total";
  family.help = "Pushes, by what the server did with them.";
  family.type = kCounter;
  family.series = {{{{"verdict", "counted"}}, double(counts.counted)},
                   {{{"verdict", "not_counted"}}, double(counts.not_counted)},
                   {{{"verdict", "refused"}}, double(counts.refused)}};
  return family;
}

MetricFamily FamilyOf(const TableFigure& figure, const ServerReport& report) {
  MetricFamily family = {figure.name, figure.help, figure.type, {}};
  const size_t shown = std::min(report.tables.size(), kMaxTablesInMetrics);
  for (size_t i = 0; i < shown; ++i) {
    const TableReport& table = report.tables[i];
    if (figure.is_of_sparse_only && !table.is_sparse) continue;
    family.series.push_back({{{"table", table.name},
                              {"type", table.is_sparse ? "sparse" : "dense"}},
                             static_cast<double>(table.*figure.of)});
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> MetricsOf(const ServerReport& report) {
  std::vector<MetricFamily> families;
  for (const ServerFigure& figure : kServerFigures) {
    families.push_back(
        {figure.name, figure.help, figure.type, {{{}, figure.of(report)}}});
  }
  families.push_back(PushesOf(report.pushes));
  for (const TableFigure& figure : kTableFigures) {
    MetricFamily family = FamilyOf(figure, report);
    if (!family.series.empty()) families.push_back(std::move(family));
  }
  return families;
}

}  // namespace penstock::ps
