#include "cli/top/sample.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/top/http_get.h"
#include "transport/base/steady_time.h"
#include "transport/monitoring/connection_json.h"
#include "transport/monitoring/status_client.h"

namespace penstock::cli {
namespace {

// The prefix of Penstock's metrics. The port's HTTP library has its own
// metrics.
constexpr char kOwnMetric[] = "penstock_sessions";

absl::StatusOr<MetricsText> ParseOwn(absl::string_view text) {
  absl::StatusOr<MetricsText> metrics = MetricsText::Parse(text);
  if (metrics.ok() && !metrics->Has(kOwnMetric)) {
    return absl::UnavailableError(
        "the server there has metrics, but none of Penstock's: is this the "
        "port of PENSTOCK_METRICS?");
  }
  return metrics;
}

// Returns "ps_server --port=1", or "" if the process has ended or belongs to
// another user.
std::string CommandOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cmdline"));
  std::string words((std::istreambuf_iterator<char>(file)),
                    std::istreambuf_iterator<char>());
  std::replace(words.begin(), words.end(), '\0', ' ');
  return std::string(absl::StripAsciiWhitespace(words));
}

// Returns the names of the status sockets in this network namespace.
std::vector<std::string> StatusSockets() {
  const std::string name = monitoring::StatusSocketName(0);
  const std::string prefix = "@" + name.substr(0, name.size() - 1);
  std::ifstream table("/proc/net/unix");
  std::vector<std::string> names;
  for (std::string line; std::getline(table, line);) {
    const std::string end = line.substr(line.rfind(' ') + 1);
    // Skips repeated names, because connections have the name of their socket
    // too.
    if (absl::StartsWith(end, prefix) && !absl::c_linear_search(names, end)) {
      names.push_back(end);
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<Sample> SampleProcess(pid_t process, absl::Duration limit) {
  auto text = monitoring::AskProcess(process, monitoring::kAskMetrics, limit);
  if (!text.ok()) return text.status();
  const auto lines =
      monitoring::AskProcess(process, monitoring::kAskConnections, limit);
  if (!lines.ok()) return lines.status();
  absl::StatusOr<MetricsText> metrics = ParseOwn(*text);
  if (!metrics.ok()) return metrics.status();
  auto connections = monitoring::FromJson(*lines);
  if (!connections.ok()) return connections.status();
  return Sample{base::SteadyNow(), *std::move(metrics), true,
                *std::move(connections)};
}

absl::StatusOr<Sample> SampleUrl(const std::string& url, absl::Duration limit) {
  const absl::StatusOr<std::string> text = HttpGet(url, limit);
  if (!text.ok()) return text.status();
  absl::StatusOr<MetricsText> metrics = ParseOwn(*text);
  if (!metrics.ok()) return metrics.status();
  return Sample{base::SteadyNow(), *std::move(metrics), false, {}};
}

std::vector<Answering> AnsweringProcesses() {
  std::map<pid_t, std::string> found;
  for (const std::string& name : StatusSockets()) {
    const auto owner = monitoring::OwnerOfStatusSocket(name.substr(1));
    // Skips a process in an invisible pid namespace, which has no number here.
    if (!owner.ok() || owner->process == 0) continue;
    if (geteuid() != 0 && geteuid() != owner->uid) continue;
    found.emplace(owner->process, CommandOf(owner->process));
  }
  std::vector<Answering> processes;
  processes.reserve(found.size());
  for (const auto& [process, command] : found) {
    processes.push_back({process, command});
  }
  return processes;
}

}  // namespace penstock::cli
