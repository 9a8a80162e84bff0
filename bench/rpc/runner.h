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
#include "bench/rpc/connection.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"
#include "bench/rpc/watchdog.h"

namespace penstock {
namespace bench {

// Runs every cell once per round, so that a disturbance of the machine falls on
// all transports alike. Each (benchmark, API, transport) of a round gets a
// fresh server process and connection: no idle server and no other connection
// is there while it is measured, and the spread over rounds includes that
// between connections. The transports' order turns by one in each round.
class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {}

  // Blocks for the whole run. A transport that cannot be had is no error, it
  // is marked in the summary; one that breaks is, and the error names its cell.
  absl::StatusOr<std::vector<CellSummary>> Run();

 private:
  using Key = std::pair<Api, Transport>;

  std::vector<Transport> TransportsOfRound(int round) const;
  absl::Status RunRound(int round);
  // All sizes over one connection.
  absl::Status RunConnection(Benchmark benchmark, Api api, Transport transport);
  absl::Status RunCell(const Cell& cell, const Connection& connection);
  std::vector<CellSummary> Summaries() const;

  const RunOptions options_;
  Watchdog watchdog_;
  std::map<std::string, std::vector<RoundResult>>
      results_;                             // by ToString(cell)
  std::map<Key, std::string> unavailable_;  // and why
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RUNNER_H_
