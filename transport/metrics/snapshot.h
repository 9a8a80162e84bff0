// The values of all metrics, at one time or of one part of the process.

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

// Returns where the number lies in a row of all numbers. Series that a program
// asks for with labels that the metric does not have are a defect of the code,
// and lie nowhere: kNoCell.
constexpr size_t kNoCell = SIZE_MAX;
size_t CellOf(Metric metric, std::initializer_list<Value> labels);
// The metric's first number; those of a series follow one another.
size_t FirstCellOf(Metric metric);
size_t CellCount();

// Sums what several parts have counted, or takes the least or the most of it,
// as the table says. Not thread-safe.
class Snapshot {
 public:
  Snapshot() : cells_(CellCount()) {}

  void Add(Metric metric, std::initializer_list<Value> labels, uint64_t value);
  void Add(Metric metric, std::initializer_list<Value> labels,
           const Histogram& histogram);
  // Adds what does not end with the part that has counted it: all but gauges.
  void AddCountersTo(std::vector<uint64_t>* cells) const;

  uint64_t cell(size_t index) const { return cells_[index]; }
  // Of a counter or gauge.
  uint64_t Get(Metric metric, std::initializer_list<Value> labels) const;

 private:
  friend class Registry;

  std::vector<uint64_t> cells_;
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_SNAPSHOT_H_
