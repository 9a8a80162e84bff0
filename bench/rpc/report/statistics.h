// Computes order statistics of small samples.

#ifndef PENSTOCK_BENCH_RPC_REPORT_STATISTICS_H_
#define PENSTOCK_BENCH_RPC_REPORT_STATISTICS_H_

#include <vector>

namespace penstock {
namespace bench {

// Returns the smallest sample that is at least as large as `percent` per cent
// of the samples (nearest rank), or 0 without samples.
double Percentile(std::vector<double> samples, double percent);

// Returns the median, or 0 without samples.
double Median(std::vector<double> samples);

struct Spread {
  double min = 0;
  double max = 0;
};

// Returns the smallest and the largest sample, or 0 and 0 without samples.
Spread SpreadOf(const std::vector<double>& samples);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_STATISTICS_H_
