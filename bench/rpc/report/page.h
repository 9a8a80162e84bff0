// Formats results as a self-contained HTML page with plots.

#ifndef PENSTOCK_BENCH_RPC_REPORT_PAGE_H_
#define PENSTOCK_BENCH_RPC_REPORT_PAGE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/rpc/report/report.h"

namespace penstock {
namespace bench {

// Returns the page. The page shows times and rates by size for each benchmark
// and API, with one line per transport, and a table. `command` is the command
// that measured `cells`. The page embeds the plotting library Chart.js.
std::string ToHtml(const std::vector<CellSummary>& cells,
                   absl::string_view command);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_PAGE_H_
