#include "bench/rpc/server/server_role.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/setup/options.h"
#include "penstock/record.h"

namespace penstock {
namespace bench {
namespace {

// Limits the milliseconds until a server process is ready. A start with cold
// caches takes about 30 ms.
constexpr int kStartTimeoutMs = 10000;
// The beginning of the line that a child sends if it cannot serve.
constexpr absl::string_view kErrorPrefix = "error: ";

}  // namespace

absl::StatusOr<RemoteServer> StartServerProcess(const RunOptions& options,
                                                Transport transport, Api api) {
  auto process = ChildProcess::Start(ServerFlags(options, transport, api));
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> line = (*process)->ReadLine(kStartTimeoutMs);
  if (!line.ok()) return line.status();
  absl::string_view text = *line;
  if (absl::ConsumePrefix(&text, kErrorPrefix)) {
    return absl::UnavailableError(text);
  }
  return RemoteServer{*std::move(line), *std::move(process)};
}

void RunServerRole(const RunOptions& options) {
  BecomeChild();
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, options.transports.front(), options.apis.front());
  if (!server.ok()) {
    SendLine(absl::StrCat(kErrorPrefix, server.status().message()));
    LeaveChild(1);
  }
  SendLine((*server)->address());
  AwaitParent();
  server->reset();
  FinishRecording();  // LeaveChild() runs no exit handlers
  LeaveChild(0);
}

}  // namespace bench
}  // namespace penstock
