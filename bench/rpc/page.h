// Shows results as one HTML file with plots, which a browser opens by itself.

#ifndef PENSTOCK_BENCH_RPC_PAGE_H_
#define PENSTOCK_BENCH_RPC_PAGE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

// Returns the page: for each benchmark and API the times and rates by size, one
// line a transport, and a table. `command` is what measured `cells`. The
// plotting library is Chart.js, which the page includes.
std::string ToHtml(const std::vector<CellSummary>& cells,
                   absl::string_view command);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_PAGE_H_
