// The values of all metrics, of the whole process or of one part of it.

#ifndef PENSTOCK_TRANSPORT_METRICS_SNAPSHOT_H_
#define PENSTOCK_TRANSPORT_METRICS_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/metric.h"

namespace penstock {
namespace metrics {

// CellOf() returns the index of a series' first cell in a Snapshot. A series
// has one cell, or several for a histogram. Returns kNoCell if the metric does
// not have the labels, which is a bug in the caller.
constexpr size_t kNoCell = SIZE_MAX;
size_t CellOf(Metric metric, std::initializer_list<Value> labels);
// Returns the metric's first cell. The cells of a series are adjacent.
size_t FirstCellOf(Metric metric);
size_t CellCount();

// Merges the values of several parts by sum, minimum or maximum, as the table
// says. Not thread-safe.
class Snapshot {
 public:
  Snapshot() : cells_(CellCount()) {}

  void Add(Metric metric, std::initializer_list<Value> labels, uint64_t value);
  void Add(Metric metric, std::initializer_list<Value> labels,
           const Histogram& histogram);
  // Adds counters and histograms to `cells`, which outlive the part that
  // counted. Leaves out gauges.
  void AddCountersTo(std::vector<uint64_t>* cells) const;

  uint64_t cell(size_t index) const { return cells_[index]; }
  // Returns the value of a counter or gauge.
  uint64_t Get(Metric metric, std::initializer_list<Value> labels) const;

 private:
  friend class Registry;

  std::vector<uint64_t> cells_;
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_SNAPSHOT_H_
