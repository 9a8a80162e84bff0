#include "cli/histogram.h"

#include <algorithm>
#include <cmath>

namespace penstock::cli {

// Returns the index of the bucket of a time. Numbers below 2 * kSlots have one
// bucket each. Each higher power of two has kSlots buckets.
size_t Histogram::BucketOf(uint64_t nanos) {
  if (nanos < kSlots) return nanos;
  const int shift = 63 - __builtin_clzll(nanos) - kBits;
  return (shift + 1) * kSlots + (nanos >> shift) - kSlots;
}

uint64_t Histogram::MiddleOf(size_t bucket) {
  if (bucket < 2 * kSlots) return bucket;
  const size_t shift = bucket / kSlots - 1;
  const uint64_t begin = (kSlots + bucket % kSlots) << shift;
  return begin + (uint64_t{1} << shift) / 2;
}

void Histogram::Add(absl::Duration time) {
  const int64_t nanos = std::max<int64_t>(0, absl::ToInt64Nanoseconds(time));
  ++buckets_[BucketOf(nanos)];
  min_ = count_ == 0 ? nanos : std::min(min_, nanos);
  max_ = std::max(max_, nanos);
  ++count_;
}

absl::Duration Histogram::Quantile(double quantile) const {
  const auto rank =
      static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen < rank || seen == 0) continue;
    const auto middle = static_cast<int64_t>(MiddleOf(i));
    return absl::Nanoseconds(std::clamp(middle, min_, max_));
  }
  return max();
}

}  // namespace penstock::cli
