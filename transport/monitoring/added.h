// Metrics that the program adds to Penstock's own.

#ifndef PENSTOCK_TRANSPORT_MONITORING_ADDED_H_
#define PENSTOCK_TRANSPORT_MONITORING_ADDED_H_

#include <functional>
#include <memory>
#include <vector>

#include "penstock/metrics.h"
#include "prometheus/metric_family.h"

namespace penstock {
namespace monitoring {

// Implements penstock::AddMetrics(). Thread-safe.
std::shared_ptr<void> Add(std::function<std::vector<MetricFamily>()> collect);

// Calls the functions that the program has added, in the order of addition, and
// returns their results. Thread-safe. Waits for calls on other threads.
std::vector<prometheus::MetricFamily> AddedFamilies();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_ADDED_H_
