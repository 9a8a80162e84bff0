// Makes a table, and the text of a JSON file, from the rounds of each cell.

#ifndef PENSTOCK_BENCH_RPC_REPORT_H_
#define PENSTOCK_BENCH_RPC_REPORT_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/rpc/cell.h"
#include "bench/rpc/load.h"
#include "bench/rpc/statistics.h"

namespace penstock {
namespace bench {

// One cell in one round.
struct RoundResult {
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double p999_us = 0;
  double mb_per_s = 0;  // 10^6 payload bytes, of one direction; kReplay: both
  double rpcs = 0;      // measured RPCs, or messages of a stream
  double read_us = 0;   // the median, for kHandover
  double seconds = 0;   // from the first to the last, for kReplay
  // Per RPC or message, of client and server together, and of the benchmark's
  // own work; for kBeside 0.
  double page_faults = 0;
  // Of client and server together, their filling and reading included; for
  // kBeside and kIdle 0.
  double cpu_us = 0;  // per RPC or message: CPU seconds per million of them
  // For kIdle, of client and server together.
  double cpu_percent = 0;  // of one core
  double kib_per_channel = 0;
  // What the first channel's client used at the end; 0 without Penstock.
  double eager_max_bytes = 0;
  double chunk_bytes = 0;
};

// All fields of RoundResult, for code that treats each alike.
constexpr double RoundResult::*kRoundFields[] = {
    &RoundResult::p50_us,          &RoundResult::p90_us,
    &RoundResult::p99_us,          &RoundResult::p999_us,
    &RoundResult::mb_per_s,        &RoundResult::rpcs,
    &RoundResult::read_us,         &RoundResult::seconds,
    &RoundResult::page_faults,     &RoundResult::cpu_us,
    &RoundResult::cpu_percent,     &RoundResult::kib_per_channel,
    &RoundResult::eager_max_bytes, &RoundResult::chunk_bytes};

RoundResult Summarize(const Cell& cell, const LoadResult& load);

// One cell over all rounds. Each value is the median of the rounds' values.
struct CellSummary {
  Cell cell;
  RoundResult median;
  Spread p50_us;            // over the rounds
  std::string unavailable;  // why there are no values; empty if there are
};

CellSummary MedianOf(const Cell& cell, const std::vector<RoundResult>& rounds);

// Columns that the table has on request, except for idle.
struct Columns {
  bool page_faults = false;
  bool details = false;  // p90, p99.9, CPU time
};

// Prints a block of lines for each benchmark, API and size, with a line for
// each transport. The last column but those on request compares with the
// block's tcp line: how many times faster, by p50 for latency, handover and
// beside, by MB/s for others; how much more memory for idle. Below the table
// stands why transports are unavailable.
void PrintTable(const std::vector<CellSummary>& cells, const Columns& columns,
                std::ostream& out);

// CPU seconds of client and server together for 10^9 payload bytes of one
// direction, and for a million RPCs or messages.
double CpuSecondsPerGb(const CellSummary& summary);
double CpuSecondsPerMillion(const CellSummary& summary);

// Returns an array with an object for each measured cell, with times to three
// decimals. Leaves out cells without values. Ends with a line feed.
std::string ToJson(const std::vector<CellSummary>& cells);

// Returns the same as lines of values with commas, below a line of their names.
// A value that the benchmark does not have is empty.
std::string ToCsv(const std::vector<CellSummary>& cells);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_H_
