#include "bench/rpc/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace penstock {
namespace bench {

double Percentile(std::vector<double> samples, double percent) {
  if (samples.empty()) return 0;
  const double rank = std::ceil(percent / 100 * samples.size());
  const size_t index = static_cast<size_t>(
      std::clamp(rank, 1.0, static_cast<double>(samples.size())) - 1);
  std::nth_element(samples.begin(), samples.begin() + index, samples.end());
  return samples[index];
}

double Median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t upper = samples.size() / 2;
  if (samples.size() % 2 == 1) return samples[upper];
  return (samples[upper - 1] + samples[upper]) / 2;
}

Spread SpreadOf(const std::vector<double>& samples) {
  if (samples.empty()) return {};
  const auto [min, max] = std::minmax_element(samples.begin(), samples.end());
  return {*min, *max};
}

}  // namespace bench
}  // namespace penstock
