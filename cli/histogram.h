// Times of many calls, in little memory.

#ifndef PENSTOCK_CLI_HISTOGRAM_H_
#define PENSTOCK_CLI_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock::cli {

// Counts times in buckets whose width is at most 1/64 of their lower bound.
// Therefore percentiles have an error of at most 1.6 %. Minimum and maximum are
// exact. Not thread-safe.
class Histogram {
 public:
  void Add(absl::Duration time);
  uint64_t count() const { return count_; }
  // Return the shortest and the longest time. All results are zero if there are
  // no times.
  absl::Duration min() const { return absl::Nanoseconds(min_); }
  absl::Duration max() const { return absl::Nanoseconds(max_); }
  // Returns a time that is at least as long as those of the fraction `quantile`
  // of the calls, by nearest rank. 0.5 gives the median.
  absl::Duration Quantile(double quantile) const;

 private:
  static constexpr int kBits = 6;
  static constexpr int kSlots = 1 << kBits;

  static size_t BucketOf(uint64_t nanos);
  static uint64_t MiddleOf(size_t bucket);

  std::array<uint64_t, (64 - kBits + 1)* kSlots> buckets_ = {};
  uint64_t count_ = 0;
  int64_t min_ = 0;
  int64_t max_ = 0;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_HISTOGRAM_H_
