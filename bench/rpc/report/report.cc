#include "bench/rpc/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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
  return a.benchmark == b.benchmark && a.api == b.api && a.bytes == b.bytes &&
         a.clients == b.clients;
}

// Returns the cell of stock gRPC over TCP, with TLS if `cell` has it, of the
// same benchmark, API and size. Returns null if there is none.
const CellSummary* FindTcp(const std::vector<CellSummary>& cells,
                           const Cell& cell) {
  const Transport stock =
      HasTls(cell.transport) ? Transport::kTls : Transport::kTcp;
  for (const CellSummary& other : cells) {
    if (other.cell.transport == stock && other.unavailable.empty() &&
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

// Returns the number of calls, or of a stream's messages, per second.
double CallsPerSecond(const CellSummary& summary) {
  if (summary.cell.benchmark == Benchmark::kReplay) {
    return summary.median.rpcs / summary.median.seconds;
  }
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
  if (summary.cell.benchmark == Benchmark::kReplay) {
    return absl::StrFormat("  %-13s %9.3f %10.1f %10.1f %19s %10.1f %8.0f %8s",
                           name, summary.median.seconds, summary.median.p50_us,
                           summary.median.p99_us, spread,
                           summary.median.mb_per_s, CallsPerSecond(summary),
                           RatioToTcp(cells, summary));
  }
  return absl::StrFormat("  %-13s %10.1f %10.1f %19s %10.1f %8.0f %8s", name,
                         summary.median.p50_us, summary.median.p99_us, spread,
                         summary.median.mb_per_s, CallsPerSecond(summary),
                         RatioToTcp(cells, summary));
}

std::string TitleOf(const Cell& block) {
  std::string title =
      absl::StrCat(Name(block.benchmark), ", ", Name(block.api), ", ",
                   FormatSize(block.bytes), FormatClients(block.clients));
  if (!block.buffers.is_one()) {
    absl::StrAppend(&title, " (", block.buffers.ToString(), ")");
  }
  return title;
}

std::string HeadOfRequested(const Columns& columns) {
  std::string head;
  if (columns.page_faults) absl::StrAppendFormat(&head, " %9s", "faults");
  if (columns.details) {
    absl::StrAppendFormat(&head, " %10s %10s %9s %9s", "p90 us", "p99.9 us",
                          "CPU s/GB", "s/M calls");
  }
  return head;
}

std::string Requested(const CellSummary& summary, const Columns& columns) {
  std::string line;
  if (columns.page_faults) {
    absl::StrAppendFormat(&line, " %9.2f", summary.median.page_faults);
  }
  if (columns.details) {
    absl::StrAppendFormat(&line, " %10.1f %10.1f %9.3g %9.1f",
                          summary.median.p90_us, summary.median.p999_us,
                          CpuSecondsPerGb(summary),
                          CpuSecondsPerMillion(summary));
  }
  return line;
}

// Numbers the reasons for unavailable transports. Lines of the table refer to
// these numbers.
class Footnotes {
 public:
  // Returns the number of the cell's reason, starting at 1.
  size_t NumberOf(const CellSummary& summary) {
    const std::string note =
        absl::StrCat(Name(summary.cell.transport), ": ", summary.unavailable);
    const auto found = std::find(notes_.begin(), notes_.end(), note);
    if (found != notes_.end()) return found - notes_.begin() + 1;
    notes_.push_back(note);
    return notes_.size();
  }

  void Print(std::ostream& out) const {
    for (size_t i = 0; i < notes_.size(); ++i) {
      out << Wrapped(absl::StrCat("[", i + 1, "] "), notes_[i]);
    }
  }

 private:
  // Returns `mark` and `text` in lines of at most 80 columns. A word longer
  // than a line is not divided. Later lines are indented by the width of
  // `mark`.
  static std::string Wrapped(const std::string& mark, const std::string& text) {
    std::string lines;
    std::string line = mark;
    bool is_first = true;
    for (absl::string_view word :
         absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      if (!is_first && line.size() + 1 + word.size() > kColumns) {
        absl::StrAppend(&lines, line, "\n");
        line = std::string(mark.size(), ' ');
        is_first = true;
      }
      absl::StrAppend(&line, is_first ? "" : " ", word);
      is_first = false;
    }
    return absl::StrCat(lines, line, "\n");
  }

  static constexpr size_t kColumns = 80;
  std::vector<std::string> notes_;
};

void PrintBlock(const std::vector<CellSummary>& cells, const Cell& block,
                Columns columns, Footnotes* footnotes, std::ostream& out) {
  if (block.benchmark == Benchmark::kIdle) columns = {};
  out << TitleOf(block) << "\n";
  if (block.benchmark == Benchmark::kIdle) {
    out << absl::StrFormat("  %-13s %10s %12s %12s", "", "CPU %", "KiB/channel",
                           "beyond tcp");
  } else if (block.benchmark == Benchmark::kHandover) {
    out << absl::StrFormat("  %-13s %10s %10s %19s %10s %8s", "", "p50 us",
                           "p99 us", "p50 min..max", "read us", "vs tcp");
  } else if (block.benchmark == Benchmark::kReplay) {
    out << absl::StrFormat("  %-13s %9s %10s %10s %19s %10s %8s %8s", "",
                           "seconds", "p50 us", "p99 us", "p50 min..max",
                           "MB/s", "calls/s", "vs tcp");
  } else {
    out << absl::StrFormat("  %-13s %10s %10s %19s %10s %8s %8s", "", "p50 us",
                           "p99 us", "p50 min..max", "MB/s", "calls/s",
                           "vs tcp");
  }
  out << HeadOfRequested(columns) << "\n";
  for (const CellSummary& summary : cells) {
    if (!SameBlock(summary.cell, block)) continue;
    if (!summary.unavailable.empty()) {
      out << absl::StrFormat("  %-13s unavailable [%d]\n",
                             Name(summary.cell.transport),
                             footnotes->NumberOf(summary));
      continue;
    }
    out << Line(cells, summary) << Requested(summary, columns) << "\n";
  }
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

RoundResult Summarize(const Cell& cell, const LoadResult& load) {
  RoundResult result;
  result.p50_us = Percentile(load.latencies_us, 50);
  result.p90_us = Percentile(load.latencies_us, 90);
  result.p99_us = Percentile(load.latencies_us, 99);
  result.p999_us = Percentile(load.latencies_us, 99.9);
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

double CpuSecondsPerMillion(const CellSummary& summary) {
  return summary.median.cpu_us;
}

double CpuSecondsPerGb(const CellSummary& summary) {
  // The number of calls that cell.bytes counts: all calls for a replay,
  // otherwise one.
  const double calls =
      summary.cell.benchmark == Benchmark::kReplay ? summary.median.rpcs : 1;
  return calls * summary.median.cpu_us * 1e3 /
         static_cast<double>(summary.cell.bytes);
}

void PrintTable(const std::vector<CellSummary>& cells, const Columns& columns,
                std::ostream& out) {
  Footnotes footnotes;
  for (size_t i = 0; i < cells.size(); ++i) {
    bool first_of_block = true;
    for (size_t j = 0; j < i; ++j) {
      if (SameBlock(cells[j].cell, cells[i].cell)) first_of_block = false;
    }
    if (first_of_block) {
      PrintBlock(cells, cells[i].cell, columns, &footnotes, out);
    }
  }
  footnotes.Print(out);
}

namespace {

nlohmann::ordered_json ToObject(const CellSummary& summary) {
  nlohmann::ordered_json object;
  object["benchmark"] = std::string(Name(summary.cell.benchmark));
  object["transport"] = std::string(Name(summary.cell.transport));
  object["api"] = std::string(Name(summary.cell.api));
  object["bytes"] = summary.cell.bytes;
  object["buffers"] = summary.cell.buffers.count;
  object["scheme"] = std::string(Name(summary.cell.buffers.scheme));
  if (summary.cell.benchmark == Benchmark::kIdle) {
    object["cpu_percent"] = Rounded(summary.median.cpu_percent);
    object["kib_per_channel"] = Rounded(summary.median.kib_per_channel);
    return object;
  }
  if (summary.cell.clients > 0) {
    object["clients"] = summary.cell.clients;
    object["calls_per_s"] = Rounded(CallsPerSecond(summary));
  }
  object["p50_us"] = Rounded(summary.median.p50_us);
  object["p50_min_us"] = Rounded(summary.p50_us.min);
  object["p50_max_us"] = Rounded(summary.p50_us.max);
  object["p90_us"] = Rounded(summary.median.p90_us);
  object["p99_us"] = Rounded(summary.median.p99_us);
  object["p999_us"] = Rounded(summary.median.p999_us);
  if (summary.cell.benchmark == Benchmark::kHandover) {
    object["read_us"] = Rounded(summary.median.read_us);
  }
  if (summary.cell.benchmark == Benchmark::kReplay) {
    object["seconds"] = Rounded(summary.median.seconds);
  }
  object["mb_per_s"] = Rounded(summary.median.mb_per_s);
  object["page_faults"] = Rounded(summary.median.page_faults);
  if (summary.median.cpu_us > 0) {
    object["cpu_s_per_gb"] = Rounded(CpuSecondsPerGb(summary));
    object["cpu_s_per_million"] = Rounded(CpuSecondsPerMillion(summary));
  }
  if (summary.median.chunk_bytes > 0) {
    object["eager_max_bytes"] = Rounded(summary.median.eager_max_bytes);
    object["chunk_bytes"] = Rounded(summary.median.chunk_bytes);
  }
  object["rpcs"] = static_cast<int64_t>(std::llround(summary.median.rpcs));
  return object;
}

// The names of the columns. All benchmarks have the same columns.
constexpr const char* kCsvColumns[] = {
    "benchmark",       "transport",       "api",
    "bytes",           "buffers",         "scheme",
    "p50_us",          "p50_min_us",      "p50_max_us",
    "p90_us",          "p99_us",          "p999_us",
    "read_us",         "seconds",         "mb_per_s",
    "page_faults",     "cpu_s_per_gb",    "cpu_s_per_million",
    "eager_max_bytes", "chunk_bytes",     "rpcs",
    "cpu_percent",     "kib_per_channel", "clients",
    "calls_per_s"};

std::string CsvValue(const nlohmann::ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

std::string ToJson(const std::vector<CellSummary>& cells) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const CellSummary& summary : cells) {
    if (summary.unavailable.empty()) array.push_back(ToObject(summary));
  }
  return array.dump(2) + "\n";
}

std::string ToCsv(const std::vector<CellSummary>& cells) {
  std::string csv = absl::StrCat(absl::StrJoin(kCsvColumns, ","), "\n");
  for (const CellSummary& summary : cells) {
    if (!summary.unavailable.empty()) continue;
    const nlohmann::ordered_json object = ToObject(summary);
    absl::StrAppend(
        &csv,
        absl::StrJoin(kCsvColumns, ",",
                      [&object](std::string* out, const char* name) {
                        out->append(CsvValue(object, name));
                      }),
        "\n");
  }
  return csv;
}

}  // namespace bench
}  // namespace penstock
