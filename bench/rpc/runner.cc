#include "bench/rpc/runner.h"

#include <algorithm>

#include "bench/rpc/client_role.h"
#include "bench/rpc/many_servers.h"

namespace penstock {
namespace bench {

absl::StatusOr<std::vector<CellSummary>> Runner::Run() {
  for (int round = 0; round < options_.rounds; ++round) {
    const absl::Status status = RunRound(round);
    if (!status.ok()) return status;
  }
  return Summaries();
}

std::vector<Transport> Runner::TransportsOfRound(int round) const {
  std::vector<Transport> transports = options_.transports;
  std::rotate(transports.begin(),
              transports.begin() + round % transports.size(), transports.end());
  return transports;
}

absl::Status Runner::RunRound(int round) {
  for (Benchmark benchmark : options_.benchmarks) {
    for (Api api : options_.apis) {
      for (Transport transport : TransportsOfRound(round)) {
        for (int clients : options_.ClientCounts(benchmark)) {
          if (unavailable_.count({api, transport}) > 0) break;
          const absl::Status status =
              Measure(benchmark, api, transport, clients);
          if (!status.ok()) return status;
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::Measure(Benchmark benchmark, Api api, Transport transport,
                             int clients) {
  const auto rounds = benchmark == Benchmark::kServers
                          ? MeasureServers(options_, transport, api, clients)
                          : MeasureInChild(options_, benchmark, transport, api);
  if (absl::IsUnavailable(rounds.status())) {
    unavailable_[{api, transport}] = std::string(rounds.status().message());
    return absl::OkStatus();
  }
  if (!rounds.ok()) return rounds.status();
  const std::vector<size_t> sizes = options_.message_sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Cell cell{benchmark, transport, api, sizes[i], {}, clients};
    results_[ToString(cell)].push_back((*rounds)[i]);
  }
  return absl::OkStatus();
}

std::vector<CellSummary> Runner::Summaries() const {
  std::vector<CellSummary> summaries;
  for (Benchmark benchmark : options_.benchmarks) {
    for (Api api : options_.apis) {
      for (size_t bytes : options_.message_sizes()) {
        for (int clients : options_.ClientCounts(benchmark)) {
          for (Transport transport : options_.transports) {
            summaries.push_back(
                SummaryOf({benchmark, transport, api, bytes, {}, clients}));
            summaries.back().cell.buffers = options_.buffers;
          }
        }
      }
    }
  }
  return summaries;
}

CellSummary Runner::SummaryOf(const Cell& cell) const {
  // Check for a lost transport first. Otherwise, if the transport was lost in a
  // later round, the values of the earlier rounds would seem complete.
  const auto lost = unavailable_.find({cell.api, cell.transport});
  if (lost != unavailable_.end()) {
    CellSummary summary;
    summary.cell = cell;
    summary.unavailable = lost->second;
    return summary;
  }
  return MedianOf(cell, results_.at(ToString(cell)));
}

}  // namespace bench
}  // namespace penstock
