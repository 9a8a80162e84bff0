#include "cli/top/sample.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/top/http_get.h"
#include "nlohmann/json.hpp"
#include "transport/base/steady_time.h"
#include "transport/monitoring/status_client.h"

namespace penstock::cli {
namespace {

using nlohmann::json;

// Of the penstock that serves it; the library of the port has some of its own.
constexpr char kOwnMetric[] = "penstock_sessions";

absl::StatusOr<MetricsText> ParseOwn(absl::string_view text) {
  absl::StatusOr<MetricsText> metrics = MetricsText::Parse(text);
  if (metrics.ok() && !metrics->Has(kOwnMetric)) {
    return absl::UnavailableError(
        "who answers serves metrics, but none of Penstock's: is it the port "
        "of PENSTOCK_METRICS?");
  }
  return metrics;
}

std::string Text(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>()
                                                   : "";
}

uint64_t Number(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number_unsigned()
             ? found->get<uint64_t>()
             : 0;
}

// Of a histogram: the first bucket ends at 1 us, each at twice the bound of the
// one before, and the last has none.
std::vector<Bucket> Buckets(const json& line, const char* key) {
  std::vector<Bucket> buckets;
  const auto histogram = line.find(key);
  if (histogram == line.end() || !histogram->is_object()) return buckets;
  const auto counts = histogram->find("buckets");
  if (counts == histogram->end() || !counts->is_array()) return buckets;
  buckets.reserve(counts->size());
  double all = 0;
  double bound = 1e-6;
  for (const json& count : *counts) {
    all += count.is_number_unsigned() ? count.get<double>() : 0;
    buckets.push_back({bound, all});
    bound *= 2;
  }
  if (!buckets.empty()) {
    buckets.back().bound = std::numeric_limits<double>::infinity();
  }
  return buckets;
}

ConnectionSample ToConnection(const json& line) {
  ConnectionSample sample;
  sample.id = Number(line, "id");
  sample.role = Text(line, "role");
  sample.peer = Text(line, "peer");
  sample.path = Text(line, "path");
  sample.detail = Text(line, "detail");
  sample.reason = Text(line, "reason");
  sample.eager_max_bytes = Number(line, "eager_max_bytes");
  sample.chunk_bytes = Number(line, "chunk_bytes");
  sample.messages_sent = Number(line, "messages_sent");
  sample.messages_received = Number(line, "messages_received");
  sample.bytes_sent = Number(line, "bytes_sent");
  sample.bytes_received = Number(line, "bytes_received");
  sample.streams = Number(line, "streams");
  sample.call_times = Buckets(line, "client_streams");
  return sample;
}

// "ps_server --port=1", or "" if it has ended or is another user's.
std::string CommandOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cmdline"));
  std::string words((std::istreambuf_iterator<char>(file)),
                    std::istreambuf_iterator<char>());
  std::replace(words.begin(), words.end(), '\0', ' ');
  return std::string(absl::StripAsciiWhitespace(words));
}

}  // namespace

absl::StatusOr<std::vector<ConnectionSample>> ParseConnections(
    absl::string_view lines) {
  std::vector<ConnectionSample> connections;
  for (absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const json parsed =
        json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) {
      return absl::InvalidArgumentError("a connection that is no JSON object");
    }
    connections.push_back(ToConnection(parsed));
  }
  return connections;
}

absl::StatusOr<Sample> SampleProcess(pid_t process, absl::Duration limit) {
  auto text = monitoring::AskProcess(process, monitoring::kAskMetrics, limit);
  if (!text.ok()) return text.status();
  const auto lines =
      monitoring::AskProcess(process, monitoring::kAskConnections, limit);
  if (!lines.ok()) return lines.status();
  absl::StatusOr<MetricsText> metrics = ParseOwn(*text);
  if (!metrics.ok()) return metrics.status();
  auto connections = ParseConnections(*lines);
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
  const std::string name = monitoring::StatusSocketName(0);
  const std::string prefix = "@" + name.substr(0, name.size() - 1);
  std::ifstream table("/proc/net/unix");
  std::vector<Answering> found;
  for (std::string line; std::getline(table, line);) {
    absl::string_view end(line);
    end.remove_prefix(std::min(end.size(), end.rfind(' ') + 1));
    end = end.substr(0, end.find('.'));  // "NAME.1" where NAME was taken
    pid_t process = 0;
    if (!absl::ConsumePrefix(&end, prefix) || !absl::SimpleAtoi(end, &process))
      continue;
    const bool is_known = std::any_of(
        found.begin(), found.end(),
        [&](const Answering& each) { return each.process == process; });
    if (!is_known) found.push_back({process, CommandOf(process)});
  }
  std::sort(found.begin(), found.end(),
            [](const Answering& left, const Answering& right) {
              return left.process < right.process;
            });
  return found;
}

}  // namespace penstock::cli
