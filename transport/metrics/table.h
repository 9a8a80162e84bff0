// The table of all metrics. To add a metric, add a name to metric.h, a row to
// table.cc, and a row to docs/operations.md. A test compares the document with
// the table.

#ifndef PENSTOCK_TRANSPORT_METRICS_TABLE_H_
#define PENSTOCK_TRANSPORT_METRICS_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/metric.h"

namespace penstock {
namespace metrics {

enum class Type { kCounter, kGauge, kHistogram };
// The unit of a value. Times are counted in nanoseconds, and shown in seconds.
enum class Unit { kNumber, kBytes, kSeconds };
// The way to merge the values of several connections. kMin ignores zeros.
enum class Merge { kSum, kMin, kMax };

struct Row {
  Metric metric;
  const char* name;
  Type type;
  Unit unit;
  Merge merge;
  absl::Span<const Label> labels;
  const char* help;  // one sentence
  // True if 0 means "no limit", so that 0 is not shown.
  bool zero_is_none;

  // Returns the number of combinations of label values.
  int series() const;
  // Returns how many numbers one series takes: one, or the buckets of a
  // histogram and its sum.
  int cells() const;
};

// Returns all rows, in the order of Metric.
absl::Span<const Row> Table();
const Row& RowOf(Metric metric);
// Returns Prometheus' name of the type: "counter", "gauge" or "histogram".
absl::string_view TypeName(Type type);

// Returns the label values of series number `series` of the row, in the order
// of the row's labels.
std::vector<absl::string_view> LabelValues(const Row& row, int series);

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_TABLE_H_
