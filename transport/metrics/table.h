// The table of all metrics. To add one, add a name to metric.h, a row to
// table.cc, and a row to docs/operations.md, which a test holds against this.

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
// What a value is; a time is counted in nanoseconds, and shown in seconds.
enum class Unit { kNumber, kBytes, kSeconds };
// What the values of several connections come to. kMin: of those but 0.
enum class Merge { kSum, kMin, kMax };

struct Row {
  Metric metric;
  const char* name;
  Type type;
  Unit unit;
  Merge merge;
  absl::Span<const Label> labels;
  const char* help;  // one sentence
  // A limit: 0 says that there is none here, and is not shown.
  bool zero_is_none;

  // How many combinations of labels there are.
  int series() const;
  // How many numbers each of them is: a histogram's buckets and its sum.
  int cells() const;
};

// By Metric.
absl::Span<const Row> Table();
const Row& RowOf(Metric metric);
// "counter", "gauge" or "histogram", as Prometheus says.
absl::string_view TypeName(Type type);

// The values of the labels of the row's `series`, in the order of the labels.
std::vector<absl::string_view> LabelValues(const Row& row, int series);

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_TABLE_H_
