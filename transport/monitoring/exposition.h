// The metrics of this process in Prometheus' form.

#ifndef PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_
#define PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_

#include <string>
#include <vector>

#include "prometheus/metric_family.h"
#include "transport/metrics/snapshot.h"

namespace penstock {
namespace monitoring {

// Returns the current metrics of this process. Thread-safe. Waits for the locks
// of connections, so call only on a thread that may block.
metrics::Snapshot CollectAll();

// Returns a family for each row of the table that has series. Omits limits that
// are not set, and the series "other" if its value is 0.
std::vector<prometheus::MetricFamily> ToFamilies(
    const metrics::Snapshot& snapshot);

// Returns the families of CollectAll(), followed by the families that the
// program has added.
std::vector<prometheus::MetricFamily> AllFamilies();

// Returns AllFamilies() in Prometheus' text format, version 0.0.4.
std::string MetricsAsText();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_
