// Counts times by their length.

#ifndef PENSTOCK_TRANSPORT_METRICS_HISTOGRAM_H_
#define PENSTOCK_TRANSPORT_METRICS_HISTOGRAM_H_

#include <array>
#include <cstdint>

namespace penstock {
namespace metrics {

// From 1 us, doubling up to 16.8 s: a quantile is right within a factor of two,
// whatever the network. Takes no memory but its own, and no more than some ten
// instructions. Not thread-safe.
class Histogram {
 public:
  static constexpr int kBounds = 25;
  // And those above all bounds.
  static constexpr int kBuckets = kBounds + 1;

  // The largest time in the bucket; none for the last.
  static constexpr uint64_t BoundNs(int bucket) {
    return uint64_t{1000} << bucket;
  }

  Histogram() = default;
  // As another one was.
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
    // The bits of the number of whole microseconds below it.
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
