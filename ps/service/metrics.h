// The metrics of a server.

#ifndef PENSTOCK_PS_SERVICE_METRICS_H_
#define PENSTOCK_PS_SERVICE_METRICS_H_

#include <cstddef>
#include <vector>

#include "penstock/metrics.h"
#include "ps/server/report.h"

namespace penstock::ps {

// Limits the tables in a scrape, because a model may have any number of tables.
constexpr size_t kMaxTablesInMetrics = 1000;

// Returns the families `penstock_ps_*` of docs/operations.md, for
// penstock::AddMetrics(). Shows the first kMaxTablesInMetrics tables of the
// model by name, and counts the others.
std::vector<MetricFamily> MetricsOf(const ServerReport& report);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_METRICS_H_
