#include "transport/monitoring/exposition.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "prometheus/text_serializer.h"
#include "transport/base/log.h"
#include "transport/metrics/histogram.h"
#include "transport/metrics/registry.h"
#include "transport/metrics/table.h"
#include "transport/monitoring/added.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace monitoring {
namespace {

using metrics::Histogram;
using metrics::Metric;
using metrics::Row;
using prometheus::ClientMetric;

double Scaled(const Row& row, uint64_t value) {
  const double number = static_cast<double>(value);
  return row.unit == metrics::Unit::kSeconds ? number * 1e-9 : number;
}

// Returns the value, or zero if it is negative. Different threads add and
// subtract parts of a gauge, so the sum may be negative for a moment.
uint64_t NotBelowZero(uint64_t value) {
  return value > std::numeric_limits<uint64_t>::max() / 2 ? 0 : value;
}

ClientMetric::Histogram ToHistogram(const metrics::Snapshot& snapshot,
                                    size_t cell) {
  ClientMetric::Histogram histogram;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    histogram.sample_count += snapshot.cell(cell++);
    const double bound = i < Histogram::kBounds
                             ? static_cast<double>(Histogram::BoundNs(i)) * 1e-9
                             : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  histogram.sample_sum = static_cast<double>(snapshot.cell(cell)) * 1e-9;
  return histogram;
}

void SetValue(const Row& row, const metrics::Snapshot& snapshot, size_t cell,
              ClientMetric* out) {
  switch (row.type) {
    case metrics::Type::kCounter:
      out->counter.value = Scaled(row, snapshot.cell(cell));
      break;
    case metrics::Type::kGauge:
      out->gauge.value = Scaled(row, NotBelowZero(snapshot.cell(cell)));
      break;
    case metrics::Type::kHistogram:
      out->histogram = ToHistogram(snapshot, cell);
      break;
  }
}

bool HasCounted(const Row& row, const metrics::Snapshot& snapshot,
                size_t cell) {
  for (int i = 0; i < row.cells(); ++i) {
    if (snapshot.cell(cell + static_cast<size_t>(i)) != 0) return true;
  }
  return false;
}

prometheus::MetricType ToPrometheus(metrics::Type type) {
  switch (type) {
    case metrics::Type::kCounter:
      return prometheus::MetricType::Counter;
    case metrics::Type::kGauge:
      return prometheus::MetricType::Gauge;
    case metrics::Type::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::MetricFamily ToFamily(const Row& row,
                                  const metrics::Snapshot& snapshot) {
  prometheus::MetricFamily family;
  family.name = row.name;
  family.help = row.help;
  family.type = ToPrometheus(row.type);
  size_t cell = metrics::FirstCellOf(row.metric);
  for (int series = 0; series < row.series(); ++series) {
    const std::vector<absl::string_view> values =
        metrics::LabelValues(row, series);
    const bool may_be_absent =
        row.zero_is_none || absl::c_linear_search(values, "other");
    if (!may_be_absent || HasCounted(row, snapshot, cell)) {
      ClientMetric metric;
      for (size_t i = 0; i < values.size(); ++i) {
        metric.label.push_back({std::string(metrics::NameOf(row.labels[i])),
                                std::string(values[i])});
      }
      SetValue(row, snapshot, cell, &metric);
      family.metric.push_back(std::move(metric));
    }
    cell += static_cast<size_t>(row.cells());
  }
  return family;
}

}  // namespace

metrics::Snapshot CollectAll() {
  metrics::Snapshot snapshot = metrics::Registry::Get()->Collect();
  snapshot.Add(Metric::kLogLinesSuppressed, {}, base::LogLinesLeftOut());
  snapshot.Add(Metric::kTasksAside, {}, progress::TasksAside());
  return snapshot;
}

std::vector<prometheus::MetricFamily> ToFamilies(
    const metrics::Snapshot& snapshot) {
  std::vector<prometheus::MetricFamily> families;
  for (const Row& row : metrics::Table()) {
    prometheus::MetricFamily family = ToFamily(row, snapshot);
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return families;
}

std::vector<prometheus::MetricFamily> AllFamilies() {
  std::vector<prometheus::MetricFamily> families = ToFamilies(CollectAll());
  for (prometheus::MetricFamily& family : AddedFamilies()) {
    families.push_back(std::move(family));
  }
  return families;
}

std::string MetricsAsText() {
  return prometheus::TextSerializer().Serialize(AllFamilies());
}

}  // namespace monitoring
}  // namespace penstock
