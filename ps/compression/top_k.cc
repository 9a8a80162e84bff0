#include "ps/compression/top_k.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace penstock::ps::compression {
namespace {

// The number of values that one task handles.
constexpr size_t kTask = 1 << 17;

// Returns the magnitude of `value` as a 31-bit number. These numbers have the
// same order as the magnitudes.
uint32_t MagnitudeOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x7FFFFFFF;
}

// A range of a magnitude's bits, by which a histogram counts.
struct Digit {
  int shift;
  int width;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};
using Histogram = std::array<uint32_t, 1 << 11>;

// The smallest magnitude to select, and how many values of exactly this
// magnitude to select.
struct Threshold {
  uint32_t magnitude = 0;
  size_t ties = 0;
};

// The numbers of a part's values above the threshold and equal to it. Later,
// the position of the part's first index, and the number of equal values to
// select.
struct Counts {
  size_t above = 0;
  size_t equal = 0;
};

class Selection {
 public:
  Selection(absl::Span<const float> values, const optim::Workers& workers)
      : values_(values),
        workers_(workers),
        parts_((values.size() + kTask - 1) / kTask) {}

  void Run(absl::Span<int32_t> indices) const {
    const Threshold threshold = Find(indices.size());
    const std::vector<Counts> counts = CountParts(threshold.magnitude);
    std::vector<Counts> taken(parts_);  // before each part, and its ties
    Counts before;
    size_t ties = threshold.ties;
    for (size_t part = 0; part < parts_; ++part) {
      taken[part] = {before.above, std::min(ties, counts[part].equal)};
      before.above += counts[part].above + taken[part].equal;
      ties -= taken[part].equal;
    }
    workers_.ForEach(parts_, [&](size_t part) {
      Write(part, {threshold.magnitude, taken[part].equal},
            indices.data() + taken[part].above);
    });
  }

 private:
  absl::Span<const float> Part(size_t part) const {
    return values_.subspan(part * kTask, kTask);
  }

  // Returns a histogram of the values of `digit`. Counts only magnitudes whose
  // bits above `digit` equal `prefix`.
  Histogram Count(Digit digit, uint32_t prefix) const {
    std::vector<Histogram> each(parts_);
    workers_.ForEach(parts_, [&](size_t part) {
      Histogram& histogram = each[part];
      const uint32_t mask = (1u << digit.width) - 1;
      for (const float value : Part(part)) {
        const uint32_t bits = MagnitudeOf(value) >> digit.shift;
        if (bits >> digit.width == prefix) ++histogram[bits & mask];
      }
    });
    for (size_t part = 1; part < parts_; ++part) {
      for (size_t i = 0; i < each[0].size(); ++i) each[0][i] += each[part][i];
    }
    return each[0];
  }

  // Returns the threshold of the `k` largest magnitudes. Requires `k` from 1 to
  // the number of values.
  Threshold Find(size_t k) const {
    Threshold threshold = {0, k};
    for (const Digit digit : kDigits) {
      const Histogram histogram = Count(digit, threshold.magnitude);
      size_t bucket = (size_t{1} << digit.width) - 1;
      while (histogram[bucket] < threshold.ties) {
        threshold.ties -= histogram[bucket--];
      }
      threshold.magnitude =
          threshold.magnitude << digit.width | static_cast<uint32_t>(bucket);
    }
    return threshold;
  }

  std::vector<Counts> CountParts(uint32_t magnitude) const {
    std::vector<Counts> counts(parts_);
    workers_.ForEach(parts_, [&](size_t part) {
      Counts own;
      for (const float value : Part(part)) {
        own.above += MagnitudeOf(value) > magnitude ? 1 : 0;
        own.equal += MagnitudeOf(value) == magnitude ? 1 : 0;
      }
      counts[part] = own;
    });
    return counts;
  }

  void Write(size_t part, Threshold threshold, int32_t* to) const {
    auto index = static_cast<int32_t>(part * kTask);
    for (const float value : Part(part)) {
      const uint32_t magnitude = MagnitudeOf(value);
      if (magnitude > threshold.magnitude) {
        *to++ = index;
      } else if (magnitude == threshold.magnitude && threshold.ties > 0) {
        --threshold.ties;
        *to++ = index;
      }
      ++index;
    }
  }

  const absl::Span<const float> values_;
  const optim::Workers& workers_;
  const size_t parts_;
};

}  // namespace

void SelectTopK(absl::Span<const float> values, const optim::Workers& workers,
                absl::Span<int32_t> indices) {
  if (indices.empty()) return;
  Selection(values, workers).Run(indices);
}

}  // namespace penstock::ps::compression
