// The counters of a server, as metrics.

#ifndef PENSTOCK_PS_SERVICE_METRICS_H_
#define PENSTOCK_PS_SERVICE_METRICS_H_

#include <cstddef>
#include <vector>

#include "penstock/metrics.h"
#include "ps/server/report.h"

namespace penstock::ps {

// So that users' models do not make a scrape large without bound.
constexpr size_t kMaxTablesInMetrics = 1000;

// Returns the families `penstock_ps_*` of docs/operations.md, for
// penstock::AddMetrics(). Tables are shown by their names, the first
// kMaxTablesInMetrics of the model, and the others counted.
std::vector<MetricFamily> MetricsOf(const ServerReport& report);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_METRICS_H_
