// Runs the whole measurement: rounds over cells.

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

// Runs every cell once per round, so that a disturbance of the machine affects
// all transports alike. In each round, each (benchmark, API, transport) gets a
// fresh client and server process, while no other process of ours runs. So the
// spread over rounds includes that between connections. The order of the
// transports is rotated by one in each round.
class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {}

  // Blocks for the whole run. Call it once. A transport that is not available
  // is no error, but marked in the summary. One that breaks is an error, which
  // names its cell.
  absl::StatusOr<std::vector<CellSummary>> Run();

 private:
  std::vector<Transport> TransportsOfRound(int round) const;
  absl::Status RunRound(int round);
  // Measures all sizes over one connection.
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
