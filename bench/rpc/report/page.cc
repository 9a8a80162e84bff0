#include "bench/rpc/report/page.h"

#include <sys/utsname.h>

#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rpc/report/page_parts.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace bench {
namespace {

// Returns a description of this machine, such as "AMD EPYC 7763, 2 cores, Linux
// 6.1.0".
std::string Machine() {
  std::string model = "a processor";
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  }
  utsname system = {};
  uname(&system);
  return absl::StrCat(model, ", ", std::thread::hardware_concurrency(),
                      " cores, ", system.sysname, " ", system.release);
}

nlohmann::ordered_json Unavailable(const std::vector<CellSummary>& cells) {
  nlohmann::ordered_json missing = nlohmann::ordered_json::array();
  std::set<std::string> said;
  for (const CellSummary& summary : cells) {
    const std::string transport(Name(summary.cell.transport));
    if (summary.unavailable.empty() || !said.insert(transport).second) continue;
    missing.push_back({{"transport", transport}, {"why", summary.unavailable}});
  }
  return missing;
}

}  // namespace

std::string ToHtml(const std::vector<CellSummary>& cells,
                   absl::string_view command) {
  nlohmann::ordered_json run;
  run["command"] = std::string(command);
  run["machine"] = Machine();
  run["date"] =
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::LocalTimeZone());
  run["cells"] = nlohmann::ordered_json::parse(ToJson(cells));
  run["unavailable"] = Unavailable(cells);
  // Escape the data: a reason may contain any text, and must not end the HTML
  // element.
  const std::string data = absl::StrReplaceAll(
      run.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace),
      {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kPage,
                             {{"/*CHART.JS*/", kChartJs}, {"/*DATA*/", data}});
}

}  // namespace bench
}  // namespace penstock
