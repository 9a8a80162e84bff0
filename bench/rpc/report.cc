#include "bench/rpc/report.h"

#include <cmath>
#include <cstdint>
#include <ostream>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace bench {
namespace {

using RoundField = double RoundResult::*;

double MedianField(const std::vector<RoundResult>& rounds, RoundField field) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const RoundResult& round : rounds) values.push_back(round.*field);
  return Median(std::move(values));
}

bool SameBlock(const Cell& a, const Cell& b) {
  return a.benchmark == b.benchmark && a.api == b.api && a.bytes == b.bytes;
}

// The tcp cell of the same benchmark, API and size; null if not measured.
const CellSummary* FindTcp(const std::vector<CellSummary>& cells,
                           const Cell& cell) {
  for (const CellSummary& other : cells) {
    if (other.cell.transport == Transport::kTcp && other.unavailable.empty() &&
        SameBlock(other.cell, cell)) {
      return &other;
    }
  }
  return nullptr;
}

std::string RatioToTcp(const std::vector<CellSummary>& cells,
                       const CellSummary& summary) {
  const CellSummary* tcp = FindTcp(cells, summary.cell);
  if (tcp == nullptr) return "-";
  const bool by_time = summary.cell.benchmark == Benchmark::kLatency ||
                       summary.cell.benchmark == Benchmark::kHandover ||
                       summary.cell.benchmark == Benchmark::kBeside;
  const double ratio = by_time ? tcp->median.p50_us / summary.median.p50_us
                               : summary.median.mb_per_s / tcp->median.mb_per_s;
  return std::isfinite(ratio) ? absl::StrFormat("%.2fx", ratio) : "-";
}

// Messages of a stream, too.
double CallsPerSecond(const CellSummary& summary) {
  return summary.median.mb_per_s * 1e6 /
         static_cast<double>(summary.cell.bytes);
}

std::string BeyondTcp(const std::vector<CellSummary>& cells,
                      const CellSummary& summary) {
  const CellSummary* tcp = FindTcp(cells, summary.cell);
  if (tcp == nullptr) return "-";
  return absl::StrFormat(
      "%+.1f", summary.median.kib_per_channel - tcp->median.kib_per_channel);
}

std::string Line(const std::vector<CellSummary>& cells,
                 const CellSummary& summary) {
  const std::string name(Name(summary.cell.transport));
  if (!summary.unavailable.empty()) {
    return absl::StrFormat("  %-13s unavailable: %s", name,
                           summary.unavailable);
  }
  if (summary.cell.benchmark == Benchmark::kIdle) {
    return absl::StrFormat(
        "  %-13s %10.3f %12.1f %12s", name, summary.median.cpu_percent,
        summary.median.kib_per_channel, BeyondTcp(cells, summary));
  }
  const std::string spread =
      absl::StrFormat("%.1f..%.1f", summary.p50_us.min, summary.p50_us.max);
  if (summary.cell.benchmark == Benchmark::kHandover) {
    return absl::StrFormat("  %-13s %10.1f %10.1f %19s %10.1f %8s", name,
                           summary.median.p50_us, summary.median.p99_us, spread,
                           summary.median.read_us, RatioToTcp(cells, summary));
  }
  return absl::StrFormat("  %-13s %10.1f %10.1f %19s %10.1f %8.0f %8s", name,
                         summary.median.p50_us, summary.median.p99_us, spread,
                         summary.median.mb_per_s, CallsPerSecond(summary),
                         RatioToTcp(cells, summary));
}

void PrintBlock(const std::vector<CellSummary>& cells, const Cell& block,
                bool page_faults, std::ostream& out) {
  page_faults = page_faults && block.benchmark != Benchmark::kIdle;
  out << absl::StrFormat("%s, %s, %s\n", std::string(Name(block.benchmark)),
                         std::string(Name(block.api)), FormatSize(block.bytes));
  if (block.benchmark == Benchmark::kIdle) {
    out << absl::StrFormat("  %-13s %10s %12s %12s", "", "CPU %", "KiB/channel",
                           "beyond tcp");
  } else if (block.benchmark == Benchmark::kHandover) {
    out << absl::StrFormat("  %-13s %10s %10s %19s %10s %8s", "", "p50 us",
                           "p99 us", "p50 min..max", "read us", "vs tcp");
  } else {
    out << absl::StrFormat("  %-13s %10s %10s %19s %10s %8s %8s", "", "p50 us",
                           "p99 us", "p50 min..max", "MB/s", "calls/s",
                           "vs tcp");
  }
  out << (page_faults ? absl::StrFormat(" %9s\n", "faults") : "\n");
  for (const CellSummary& summary : cells) {
    if (!SameBlock(summary.cell, block)) continue;
    out << Line(cells, summary);
    if (page_faults && summary.unavailable.empty()) {
      out << absl::StrFormat(" %9.2f", summary.median.page_faults);
    }
    out << "\n";
  }
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

RoundResult Summarize(const Cell& cell, const LoadResult& load) {
  RoundResult result;
  result.p50_us = Percentile(load.latencies_us, 50);
  result.p99_us = Percentile(load.latencies_us, 99);
  result.read_us = Percentile(load.reads_us, 50);
  result.rpcs = static_cast<double>(load.latencies_us.size());
  if (load.seconds > 0) {
    result.mb_per_s =
        result.rpcs * static_cast<double>(cell.bytes) / load.seconds / 1e6;
  }
  return result;
}

CellSummary MedianOf(const Cell& cell, const std::vector<RoundResult>& rounds) {
  CellSummary summary;
  summary.cell = cell;
  for (RoundField field : kRoundFields) {
    summary.median.*field = MedianField(rounds, field);
  }
  std::vector<double> p50s;
  p50s.reserve(rounds.size());
  for (const RoundResult& round : rounds) p50s.push_back(round.p50_us);
  summary.p50_us = SpreadOf(p50s);
  return summary;
}

void PrintTable(const std::vector<CellSummary>& cells, bool page_faults,
                std::ostream& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    bool first_of_block = true;
    for (size_t j = 0; j < i; ++j) {
      if (SameBlock(cells[j].cell, cells[i].cell)) first_of_block = false;
    }
    if (first_of_block) PrintBlock(cells, cells[i].cell, page_faults, out);
  }
}

std::string ToJson(const std::vector<CellSummary>& cells) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const CellSummary& summary : cells) {
    if (!summary.unavailable.empty()) continue;
    nlohmann::ordered_json object;
    object["benchmark"] = std::string(Name(summary.cell.benchmark));
    object["transport"] = std::string(Name(summary.cell.transport));
    object["api"] = std::string(Name(summary.cell.api));
    object["bytes"] = summary.cell.bytes;
    if (summary.cell.benchmark == Benchmark::kIdle) {
      object["cpu_percent"] = Rounded(summary.median.cpu_percent);
      object["kib_per_channel"] = Rounded(summary.median.kib_per_channel);
      array.push_back(std::move(object));
      continue;
    }
    object["p50_us"] = Rounded(summary.median.p50_us);
    object["p99_us"] = Rounded(summary.median.p99_us);
    if (summary.cell.benchmark == Benchmark::kHandover) {
      object["read_us"] = Rounded(summary.median.read_us);
    }
    object["mb_per_s"] = Rounded(summary.median.mb_per_s);
    object["page_faults"] = Rounded(summary.median.page_faults);
    if (summary.median.chunk_bytes > 0) {
      object["eager_max_bytes"] = Rounded(summary.median.eager_max_bytes);
      object["chunk_bytes"] = Rounded(summary.median.chunk_bytes);
    }
    object["rpcs"] = static_cast<int64_t>(std::llround(summary.median.rpcs));
    array.push_back(std::move(object));
  }
  return array.dump(2) + "\n";
}

}  // namespace bench
}  // namespace penstock
