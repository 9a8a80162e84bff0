// Metrics that the program has added to Penstock's own.

#ifndef PENSTOCK_TRANSPORT_MONITORING_ADDED_H_
#define PENSTOCK_TRANSPORT_MONITORING_ADDED_H_

#include <functional>
#include <memory>
#include <vector>

#include "penstock/metrics.h"
#include "prometheus/metric_family.h"

namespace penstock {
namespace monitoring {

// As penstock::AddMetrics() says. Thread-safe.
std::shared_ptr<void> Add(std::function<std::vector<MetricFamily>()> collect);

// Returns what the added functions return now, in the order in which they were
// added. Thread-safe; waits for their calls on other threads.
std::vector<prometheus::MetricFamily> AddedFamilies();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_ADDED_H_
