// Parses the parts of Prometheus' text format that describe a process.

#ifndef PENSTOCK_CLI_TOP_METRICS_TEXT_H_
#define PENSTOCK_CLI_TOP_METRICS_TEXT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

// The labels of a series: their values by name.
using Labels = std::map<std::string, std::string>;

struct Series {
  Labels labels;
  double value = 0;
};

// A cumulative bucket: the number of observations that are at most `bound`.
struct Bucket {
  double bound = 0;  // may be infinite
  double count = 0;  // of this bucket and all before it
};

// The metrics of a process at one time.
class MetricsText {
 public:
  // Parses `text`. Returns INVALID_ARGUMENT, with the line, for a malformed
  // text. Ignores comments and times. A metric that occurs twice counts twice.
  static absl::StatusOr<MetricsText> Parse(absl::string_view text);

  bool Has(const std::string& metric) const;
  // Returns the sum of the series of `metric` that have all of `labels`, or 0.
  double Sum(const std::string& metric, const Labels& labels = {}) const;
  // Returns the series, in the order of the text.
  const std::vector<Series>& All(const std::string& metric) const;
  // Returns the histogram's buckets, ordered by bound. Adds up all series that
  // have `labels`.
  std::vector<Bucket> Buckets(const std::string& histogram,
                              const Labels& labels = {}) const;

 private:
  std::map<std::string, std::vector<Series>> series_;
};

// Returns an upper bound of the quantile `share` (0 to 1) of observations
// between two snapshots of a histogram. Returns 0 if there are none.
double QuantileBetween(const std::vector<Bucket>& before,
                       const std::vector<Bucket>& after, double share);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_METRICS_TEXT_H_
