#include "transport/metrics/snapshot.h"

#include <algorithm>
#include <cassert>

#include "transport/metrics/table.h"

namespace penstock {
namespace metrics {
namespace {

struct Layout {
  std::vector<size_t> first;  // by Metric
  size_t count = 0;
};

const Layout& GetLayout() {
  static const Layout* const layout = [] {
    auto* made = new Layout;
    for (const Row& row : Table()) {
      made->first.push_back(made->count);
      made->count +=
          static_cast<size_t>(row.series()) * static_cast<size_t>(row.cells());
    }
    return made;
  }();
  return *layout;
}

void MergeInto(Merge merge, uint64_t value, uint64_t* cell) {
  switch (merge) {
    case Merge::kSum:
      *cell += value;
      break;
    case Merge::kMin:
      if (value != 0) *cell = *cell == 0 ? value : std::min(*cell, value);
      break;
    case Merge::kMax:
      *cell = std::max(*cell, value);
      break;
  }
}

}  // namespace

size_t FirstCellOf(Metric metric) {
  return GetLayout().first[static_cast<size_t>(metric)];
}

size_t CellCount() { return GetLayout().count; }

size_t CellOf(Metric metric, std::initializer_list<Value> labels) {
  const Row& row = RowOf(metric);
  const Label* wanted = row.labels.begin();
  int series = 0;
  for (const Value& value : labels) {
    const int count = static_cast<int>(ValuesOf(value.label).size());
    if (wanted == row.labels.end() || value.label != *wanted++ ||
        value.index < 0 || value.index >= count) {
      assert(!"labels that the metric does not have");
      return kNoCell;
    }
    series = series * count + value.index;
  }
  if (wanted != row.labels.end()) {
    assert(!"labels are missing");
    return kNoCell;
  }
  return FirstCellOf(metric) +
         static_cast<size_t>(series) * static_cast<size_t>(row.cells());
}

void Snapshot::Add(Metric metric, std::initializer_list<Value> labels,
                   uint64_t value) {
  const size_t cell = CellOf(metric, labels);
  if (cell != kNoCell) MergeInto(RowOf(metric).merge, value, &cells_[cell]);
}

void Snapshot::Add(Metric metric, std::initializer_list<Value> labels,
                   const Histogram& histogram) {
  size_t cell = CellOf(metric, labels);
  if (cell == kNoCell || RowOf(metric).type != Type::kHistogram) return;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    cells_[cell++] += histogram.bucket(i);
  }
  cells_[cell] += histogram.sum_ns();
}

void Snapshot::AddCountersTo(std::vector<uint64_t>* cells) const {
  for (const Row& row : Table()) {
    if (row.type == Type::kGauge) continue;
    const size_t first = FirstCellOf(row.metric);
    const size_t count =
        static_cast<size_t>(row.series()) * static_cast<size_t>(row.cells());
    for (size_t i = first; i < first + count; ++i) (*cells)[i] += cells_[i];
  }
}

uint64_t Snapshot::Get(Metric metric,
                       std::initializer_list<Value> labels) const {
  const size_t cell = CellOf(metric, labels);
  return cell == kNoCell ? 0 : cells_[cell];
}

}  // namespace metrics
}  // namespace penstock
