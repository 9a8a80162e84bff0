// The whole measurement: rounds over cells.

#ifndef PENSTOCK_BENCH_RPC_RUNNER_H_
#define PENSTOCK_BENCH_RPC_RUNNER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

// Runs every cell once per round, so that a disturbance of the machine falls on
// all transports alike. Each (benchmark, API, transport) of a round gets a
// fresh client and server process: nothing else of ours is there while it is
// measured, and the spread over rounds includes that between connections. The
// transports' order turns by one in each round.
class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {}

  // Blocks for the whole run; call once. A transport that cannot be had is no
  // error, it is marked in the summary; one that breaks is, and the error names
  // its cell.
  absl::StatusOr<std::vector<CellSummary>> Run();

 private:
  std::vector<Transport> TransportsOfRound(int round) const;
  absl::Status RunRound(int round);
  // All sizes over one connection.
  absl::Status Measure(Benchmark benchmark, Api api, Transport transport);
  std::vector<CellSummary> Summaries() const;
  CellSummary SummaryOf(const Cell& cell) const;

  const RunOptions options_;
  std::map<std::string, std::vector<RoundResult>> results_;  // by ToString()
  std::map<std::pair<Api, Transport>, std::string> unavailable_;  // and why
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RUNNER_H_
