// Runs the whole measurement: all rounds over all cells.

#ifndef PENSTOCK_BENCH_RPC_RUNNER_H_
#define PENSTOCK_BENCH_RPC_RUNNER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

// Runs every cell once per round, so that a disturbance of the machine affects
// all transports alike. In each round, each (benchmark, API, transport) gets
// new client and server processes, and no other process of this program runs.
// Thus the spread over rounds includes the spread between connections. The
// order of the transports rotates by one in each round.
class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {}

  // Measures everything, and blocks for the whole run. Call it once. An
  // unavailable transport is marked in the summary. A transport that breaks is
  // an error that names the cell.
  absl::StatusOr<std::vector<CellSummary>> Run();

 private:
  std::vector<Transport> TransportsOfRound(int round) const;
  absl::Status RunRound(int round);
  // Measures all sizes over one connection, or with `clients` client processes.
  absl::Status Measure(Benchmark benchmark, Api api, Transport transport,
                       int clients);
  std::vector<CellSummary> Summaries() const;
  CellSummary SummaryOf(const Cell& cell) const;

  const RunOptions options_;
  std::map<std::string, std::vector<RoundResult>> results_;  // by ToString()
  // The transports that are unavailable with an API, and the reason.
  std::map<std::pair<Api, Transport>, std::string> unavailable_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RUNNER_H_
