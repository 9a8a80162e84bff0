#include "bench/rpc/runner.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/rpc/client.h"
#include "bench/rpc/load.h"

namespace penstock {
namespace bench {
namespace {

// A fifth of a burst goes unmeasured before it: enough for gRPC to have its
// threads and its windows, and for a fresh heap to have grown.
constexpr int kWarmUpPart = 5;

LoadPlan PlanFor(const RunOptions& options, const Cell& cell) {
  LoadPlan plan;
  plan.bytes = cell.bytes;
  plan.seconds = options.seconds;
  plan.rpcs = options.rpcs;
  plan.threads = options.threads;
  plan.window = cell.benchmark == Benchmark::kBandwidth ? options.window : 1;
  return plan;
}

LoadPlan WarmUp(LoadPlan plan) {
  plan.seconds /= kWarmUpPart;
  if (plan.rpcs > 0) plan.rpcs = std::max<int64_t>(plan.rpcs / kWarmUpPart, 1);
  return plan;
}

absl::Status WithCell(const Cell& cell, const absl::Status& status) {
  return absl::Status(
      status.code(), absl::StrCat(ToString(cell), ": ",
                                  absl::StatusCodeToString(status.code()), ": ",
                                  status.message()));
}

}  // namespace

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
        if (unavailable_.count({api, transport}) > 0) continue;
        const absl::Status status = RunConnection(benchmark, api, transport);
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::RunConnection(Benchmark benchmark, Api api,
                                   Transport transport) {
  const Cell first{benchmark, transport, api, options_.sizes.front()};
  watchdog_.SetLabel(ToString(first));
  const auto connection = Connection::Open(transport, api, options_.threads);
  if (absl::IsUnavailable(connection.status())) {
    unavailable_[{api, transport}] = std::string(connection.status().message());
    return absl::OkStatus();
  }
  if (!connection.ok()) return WithCell(first, connection.status());
  for (size_t bytes : options_.sizes) {
    const Cell cell{benchmark, transport, api, bytes};
    const absl::Status status = RunCell(cell, **connection);
    if (!status.ok()) return WithCell(cell, status);
  }
  return absl::OkStatus();
}

absl::Status Runner::RunCell(const Cell& cell, const Connection& connection) {
  watchdog_.SetLabel(ToString(cell));
  const RunLoad run = ClientFor(cell.benchmark, cell.api);
  const LoadPlan plan = PlanFor(options_, cell);
  Load warm_up(WarmUp(plan), &watchdog_);
  run(connection.channel(), &warm_up);
  absl::StatusOr<LoadResult> result = warm_up.Finish();
  if (!result.ok()) return result.status();
  Load load(plan, &watchdog_);
  run(connection.channel(), &load);
  result = load.Finish();
  if (!result.ok()) return result.status();
  // The path may have changed under the burst; then its times belong to
  // neither.
  const absl::Status path = connection.CheckPath();
  if (!path.ok()) return path;
  results_[ToString(cell)].push_back(Summarize(cell, *result));
  return absl::OkStatus();
}

std::vector<CellSummary> Runner::Summaries() const {
  std::vector<CellSummary> summaries;
  for (Benchmark benchmark : options_.benchmarks) {
    for (Api api : options_.apis) {
      for (size_t bytes : options_.sizes) {
        for (Transport transport : options_.transports) {
          const Cell cell{benchmark, transport, api, bytes};
          const auto found = results_.find(ToString(cell));
          CellSummary summary;
          summary.cell = cell;
          if (found != results_.end()) summary = MedianOf(cell, found->second);
          // Lost in a later round: the values of the earlier ones would pass
          // for the whole.
          const auto lost = unavailable_.find({api, transport});
          if (lost != unavailable_.end()) summary.unavailable = lost->second;
          summaries.push_back(summary);
        }
      }
    }
  }
  return summaries;
}

}  // namespace bench
}  // namespace penstock
