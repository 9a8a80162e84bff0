#include "bench/rpc/client_role.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/rpc/child_process.h"
#include "bench/rpc/client.h"
#include "bench/rpc/connection.h"
#include "bench/rpc/load.h"
#include "bench/rpc/watchdog.h"

namespace penstock {
namespace bench {
namespace {

// A fifth of a burst goes unmeasured before it: enough for gRPC to have its
// threads and its windows, and for a fresh heap to have grown.
constexpr int kWarmUpPart = 5;

// The lines that the child sends: one per size, or a last one with a reason.
constexpr absl::string_view kResultPrefix = "result ";
constexpr absl::string_view kUnavailablePrefix = "unavailable ";
constexpr absl::string_view kErrorPrefix = "error ";

// Digits that bring a double back unchanged.
std::string EncodeResult(const RoundResult& result) {
  return absl::StrFormat("%s%.17g %.17g %.17g %.17g", kResultPrefix,
                         result.p50_us, result.p99_us, result.mb_per_s,
                         result.rpcs);
}

absl::StatusOr<RoundResult> DecodeLine(absl::string_view line) {
  if (absl::ConsumePrefix(&line, kUnavailablePrefix)) {
    return absl::UnavailableError(line);
  }
  if (absl::ConsumePrefix(&line, kErrorPrefix)) return absl::AbortedError(line);
  RoundResult result;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::StripPrefix(line, kResultPrefix), ' ');
  if (fields.size() != 4 || !absl::SimpleAtod(fields[0], &result.p50_us) ||
      !absl::SimpleAtod(fields[1], &result.p99_us) ||
      !absl::SimpleAtod(fields[2], &result.mb_per_s) ||
      !absl::SimpleAtod(fields[3], &result.rpcs)) {
    return absl::InternalError(absl::StrCat("not a result: ", line));
  }
  return result;
}

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

absl::StatusOr<LoadResult> RunBurst(const LoadPlan& plan, const Cell& cell,
                                    const Connection& connection,
                                    Watchdog* watchdog) {
  Load load(plan, watchdog);
  ClientFor(cell.benchmark, cell.api)(connection.channel(), &load);
  return load.Finish();
}

absl::StatusOr<RoundResult> RunCell(const RunOptions& options, const Cell& cell,
                                    const Connection& connection,
                                    Watchdog* watchdog) {
  watchdog->SetLabel(ToString(cell));
  const LoadPlan plan = PlanFor(options, cell);
  absl::StatusOr<LoadResult> result =
      RunBurst(WarmUp(plan), cell, connection, watchdog);
  if (result.ok()) result = RunBurst(plan, cell, connection, watchdog);
  if (!result.ok()) return result.status();
  // The path may have changed under the burst; then its times belong to
  // neither.
  const absl::Status path = connection.CheckPath();
  if (!path.ok()) return path;
  return Summarize(cell, *result);
}

void SendError(const Cell& cell, const absl::Status& status) {
  SendLine(absl::StrCat(kErrorPrefix, ToString(cell), ": ",
                        absl::StatusCodeToString(status.code()), ": ",
                        status.message()));
}

// False if an error was sent.
bool RunCells(const RunOptions& options) {
  Cell cell{options.benchmarks.front(), options.transports.front(),
            options.apis.front(), options.sizes.front()};
  Watchdog watchdog;
  watchdog.SetLabel(ToString(cell));
  const auto connection = Connection::Open(options, cell.transport, cell.api);
  if (absl::IsUnavailable(connection.status())) {
    SendLine(absl::StrCat(kUnavailablePrefix, connection.status().message()));
    return false;
  }
  if (!connection.ok()) {
    SendError(cell, connection.status());
    return false;
  }
  for (size_t bytes : options.sizes) {
    cell.bytes = bytes;
    const auto result = RunCell(options, cell, **connection, &watchdog);
    if (!result.ok()) {
      SendError(cell, result.status());
      return false;
    }
    SendLine(EncodeResult(*result));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<RoundResult>> MeasureInChild(
    const RunOptions& options, Benchmark benchmark, Transport transport,
    Api api) {
  auto process =
      ChildProcess::Start(ClientFlags(options, benchmark, transport, api));
  if (!process.ok()) return process.status();
  std::vector<RoundResult> results;
  for (size_t bytes : options.sizes) {
    // No time limit: the child's watchdog has one.
    const absl::StatusOr<std::string> line = (*process)->ReadLine(-1);
    if (!line.ok()) {
      return absl::AbortedError(
          absl::StrCat(ToString({benchmark, transport, api, bytes}), ": ",
                       line.status().message()));
    }
    const absl::StatusOr<RoundResult> result = DecodeLine(*line);
    if (!result.ok()) return result.status();
    results.push_back(*result);
  }
  return results;
}

void RunClientRole(const RunOptions& options) {
  BecomeChild();
  LeaveChild(RunCells(options) ? 0 : 1);
}

}  // namespace bench
}  // namespace penstock
