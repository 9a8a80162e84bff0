// Formats the rounds of all cells as a table, JSON or CSV.

#ifndef PENSTOCK_BENCH_RPC_REPORT_REPORT_H_
#define PENSTOCK_BENCH_RPC_REPORT_REPORT_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/rpc/client/load.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/report/statistics.h"

namespace penstock {
namespace bench {

// The measured values of one cell in one round.
struct RoundResult {
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  // 10^6 payload bytes per second in one direction; for kReplay, in both.
  double mb_per_s = 0;
  double rpcs = 0;     // measured RPCs, or messages of a stream
  double read_us = 0;  // median, for kHandover
  double seconds = 0;  // from the first to the last call, for kReplay
  // Page faults per RPC or message, of client and server together, including
  // the benchmark's own work. 0 for kBeside.
  double page_faults = 0;
  // CPU time of client and server together, including their filling and
  // reading. 0 for kBeside and kIdle.
  double cpu_us = 0;  // per RPC or message
  // For kIdle: the CPU time of client and server together, as a share of one
  // core.
  double cpu_percent = 0;  // of one core
  double kib_per_channel = 0;
  // Penstock's settings on the first channel's client after the round. 0
  // without Penstock.
  double eager_max_bytes = 0;
  double chunk_bytes = 0;
};

// All fields of RoundResult, for code that handles each field in the same way.
constexpr double RoundResult::*kRoundFields[] = {
    &RoundResult::p50_us,          &RoundResult::p90_us,
    &RoundResult::p99_us,          &RoundResult::p999_us,
    &RoundResult::mb_per_s,        &RoundResult::rpcs,
    &RoundResult::read_us,         &RoundResult::seconds,
    &RoundResult::page_faults,     &RoundResult::cpu_us,
    &RoundResult::cpu_percent,     &RoundResult::kib_per_channel,
    &RoundResult::eager_max_bytes, &RoundResult::chunk_bytes};

RoundResult Summarize(const Cell& cell, const LoadResult& load);

// The values of one cell over all rounds. Each value is the median of the
// rounds.
struct CellSummary {
  Cell cell;
  RoundResult median;
  Spread p50_us;  // over the rounds
  // The reason why the cell has no values; empty if it has values.
  std::string unavailable;
};

CellSummary MedianOf(const Cell& cell, const std::vector<RoundResult>& rounds);

// Selects optional columns of the table. kIdle's table always has them.
struct Columns {
  bool page_faults = false;
  bool details = false;  // p90, p99.9, CPU time
};

// Prints a block for each benchmark, API and size, with a line per transport.
// The last column, except optional ones, compares with the block's tcp line.
// The column shows the speed-up: by p50 for kLatency, kHandover and kBeside,
// and by MB/s for others. For kIdle, the column shows the ratio of memory.
// Reasons for unavailable transports follow the table.
void PrintTable(const std::vector<CellSummary>& cells, const Columns& columns,
                std::ostream& out);

// Return the CPU seconds of client and server together, for 10^9 payload bytes
// in one direction, or for a million RPCs or messages.
double CpuSecondsPerGb(const CellSummary& summary);
double CpuSecondsPerMillion(const CellSummary& summary);

// Returns an array with an object for each measured cell. Times have three
// decimals. Omits cells without values. Ends with a line feed.
std::string ToJson(const std::vector<CellSummary>& cells);

// Returns the values of ToJson() as comma-separated values, with a header line.
// A value that the benchmark does not have is empty.
std::string ToCsv(const std::vector<CellSummary>& cells);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_REPORT_H_
