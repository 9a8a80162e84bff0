#include "bench/rpc/client_role.h"

#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/rpc/client/watchdog.h"
#include "bench/rpc/measure.h"
#include "bench/rpc/server_channels.h"
#include "bench/rpc/setup/child_process.h"

namespace penstock {
namespace bench {
namespace {

// The first word of each line that the child sends: one result per size, or a
// final reason or error.
constexpr absl::string_view kResultPrefix = "result ";
constexpr absl::string_view kUnavailablePrefix = "unavailable ";
constexpr absl::string_view kErrorPrefix = "error ";

// Encodes doubles with enough digits to restore them exactly.
std::string EncodeResult(const RoundResult& result) {
  std::string line(absl::StripSuffix(kResultPrefix, " "));
  for (auto field : kRoundFields) {
    absl::StrAppendFormat(&line, " %.17g", result.*field);
  }
  return line;
}

absl::StatusOr<RoundResult> DecodeLine(absl::string_view line) {
  if (absl::ConsumePrefix(&line, kUnavailablePrefix)) {
    return absl::UnavailableError(line);
  }
  if (absl::ConsumePrefix(&line, kErrorPrefix)) return absl::AbortedError(line);
  RoundResult result;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::StripPrefix(line, kResultPrefix), ' ');
  bool good = fields.size() == std::size(kRoundFields);
  for (size_t i = 0; good && i < fields.size(); ++i) {
    good = absl::SimpleAtod(fields[i], &(result.*kRoundFields[i]));
  }
  if (!good) return absl::InternalError(absl::StrCat("not a result: ", line));
  return result;
}

void SendError(const Cell& cell, const absl::Status& status) {
  SendLine(absl::StrCat(kErrorPrefix, ToString(cell), ": ",
                        absl::StatusCodeToString(status.code()), ": ",
                        status.message()));
}

// Measures all sizes, and sends each result to the parent. Returns false if an
// error was sent.
bool RunCells(const RunOptions& options) {
  Cell cell{options.benchmarks.front(), options.transports.front(),
            options.apis.front(), options.message_sizes().front()};
  Watchdog watchdog;
  watchdog.SetLabel(ToString(cell));
  const auto server = ServerChannels::Open(options, cell.transport, cell.api);
  if (absl::IsUnavailable(server.status())) {
    SendLine(absl::StrCat(kUnavailablePrefix, server.status().message()));
    return false;
  }
  if (!server.ok()) {
    SendError(cell, server.status());
    return false;
  }
  const absl::Status warm = WarmUpChannels(options, **server, &watchdog);
  if (!warm.ok()) {
    SendError(cell, warm);
    return false;
  }
  for (size_t bytes : options.message_sizes()) {
    cell.bytes = bytes;
    // Wait for the parent's signal, so that all clients of kServers start each
    // size together.
    if (cell.benchmark == Benchmark::kServers) {
      SendLine(EncodeResult({}));
      while (!AwaitGo()) watchdog.Progress();
    }
    const auto result = MeasureCell(options, cell, **server, &watchdog);
    if (!result.ok()) {
      SendError(cell, result.status());
      return false;
    }
    SendLine(EncodeResult(*result));
  }
  return true;
}

}  // namespace

absl::StatusOr<RoundResult> ReadResult(const Cell& cell,
                                       ChildProcess* process) {
  const absl::StatusOr<std::string> line = process->ReadLine(-1);
  if (!line.ok()) {
    return absl::AbortedError(
        absl::StrCat(ToString(cell), ": ", line.status().message()));
  }
  return DecodeLine(*line);
}

absl::StatusOr<std::vector<RoundResult>> MeasureInChild(
    const RunOptions& options, Benchmark benchmark, Transport transport,
    Api api) {
  auto process =
      ChildProcess::Start(ClientFlags(options, benchmark, transport, api));
  if (!process.ok()) return process.status();
  std::vector<RoundResult> results;
  for (size_t bytes : options.message_sizes()) {
    const absl::StatusOr<RoundResult> result =
        ReadResult({benchmark, transport, api, bytes}, process->get());
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
