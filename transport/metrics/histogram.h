// A histogram of durations.

#ifndef PENSTOCK_TRANSPORT_METRICS_HISTOGRAM_H_
#define PENSTOCK_TRANSPORT_METRICS_HISTOGRAM_H_

#include <array>
#include <cstdint>

namespace penstock {
namespace metrics {

// A histogram. The bounds double from 1 us up to 16.8 s, so that a quantile is
// right within a factor of two on any network. Allocates nothing. Record()
// takes about ten instructions. Not thread-safe.
class Histogram {
 public:
  static constexpr int kBounds = 25;
  // The number of buckets. The last bucket counts durations above all bounds.
  static constexpr int kBuckets = kBounds + 1;

  // Returns the upper bound of the bucket. The last bucket has none.
  static constexpr uint64_t BoundNs(int bucket) {
    return uint64_t{1000} << bucket;
  }

  Histogram() = default;
  // Restores a histogram from its buckets and sum.
  Histogram(const std::array<uint64_t, kBuckets>& buckets, uint64_t sum_ns)
      : sum_ns_(sum_ns) {
    for (int i = 0; i < kBuckets; ++i) buckets_[i] = buckets[i];
  }

  void Record(uint64_t ns) {
    ++buckets_[BucketOf(ns)];
    sum_ns_ += ns;
  }
  void Add(const Histogram& other) {
    for (int i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    sum_ns_ += other.sum_ns_;
  }
  uint64_t bucket(int index) const { return buckets_[index]; }
  uint64_t sum_ns() const { return sum_ns_; }

 private:
  static int BucketOf(uint64_t ns) {
    if (ns <= BoundNs(0)) return 0;
    // Finds the bucket by the bit length of the whole microseconds below `ns`.
    const uint64_t us = (ns - 1) / 1000;
    const int bits = 64 - __builtin_clzll(us);
    return bits < kBounds ? bits : kBounds;
  }

  uint64_t buckets_[kBuckets] = {};
  uint64_t sum_ns_ = 0;
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_HISTOGRAM_H_
