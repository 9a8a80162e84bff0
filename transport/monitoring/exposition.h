// The metrics of this process as Prometheus reads them.

#ifndef PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_
#define PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_

#include <string>
#include <vector>

#include "prometheus/metric_family.h"
#include "transport/metrics/snapshot.h"

namespace penstock {
namespace monitoring {

// Returns the metrics of this process, as they are now. Thread-safe. Waits for
// the locks of connections: call it on a thread that may.
metrics::Snapshot CollectAll();

// Returns a family for each row of the table that has series. A series for what
// the table does not name ("other") is there only if it has counted something,
// and a limit only if there is one.
std::vector<prometheus::MetricFamily> ToFamilies(
    const metrics::Snapshot& snapshot);

// Returns those of CollectAll(), and behind them what the program has added.
std::vector<prometheus::MetricFamily> AllFamilies();

// Returns AllFamilies() in Prometheus' text format, version 0.0.4.
std::string MetricsAsText();

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_EXPOSITION_H_
