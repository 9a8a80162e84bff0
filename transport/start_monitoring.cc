#include "transport/start_monitoring.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "penstock/metrics.h"
#include "penstock/record.h"
#include "transport/base/log.h"
#include "transport/monitoring/status_socket.h"
#include "transport/monitoring/trace_file.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace {

// Logs why the setting of a variable has no effect. The program goes on.
void LogUnused(const char* variable, const absl::Status& status) {
  if (status.ok()) return;
  base::LogError(absl::StrCat(variable, " is not used: ", status.message()));
}

void StartPort() {
  const std::string address = ResolveMetrics().value_or("");
  if (address.empty()) return;
  const absl::StatusOr<int> port = ServeMetrics(address);
  if (port.ok()) {
    base::LogInfo(absl::StrCat("metrics are served on port ", *port));
  } else {
    LogUnused("PENSTOCK_METRICS", port.status());
  }
}

// Defers all work to the first connection.
void StartStatusSocket() {
  if (ResolveStatusSocket().value_or(StatusSocket::kOff) == StatusSocket::kOn) {
    monitoring::ServeStatusFromFirstConnection();
  }
}

void StartTrace() {
  const std::string path = ResolveTrace().value_or("");
  if (path.empty()) return;
  LogUnused("PENSTOCK_TRACE", monitoring::WriteTraceTo(path));
}

void StartRecording() {
  const std::string path = ResolveRecord().value_or("");
  if (path.empty()) return;
  LogUnused("PENSTOCK_RECORD", RecordCalls(path));
}

}  // namespace

void StartMonitoringOnce() {
  static const bool started =
      (StartPort(), StartStatusSocket(), StartTrace(), StartRecording(), true);
  (void)started;
}

}  // namespace penstock
