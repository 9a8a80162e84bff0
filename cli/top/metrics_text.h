// Reads Prometheus' text format, as far as it is needed to look at a process.

#ifndef PENSTOCK_CLI_TOP_METRICS_TEXT_H_
#define PENSTOCK_CLI_TOP_METRICS_TEXT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

// {name: value}
using Labels = std::map<std::string, std::string>;

struct Series {
  Labels labels;
  double value = 0;
};

// Which observations of a histogram are at most so many.
struct Bucket {
  double bound = 0;  // may be infinite
  double count = 0;  // of this one and of all before it
};

// What a process has said at one time.
class MetricsText {
 public:
  // INVALID_ARGUMENT, with the line, if `text` is not of that format. Comments
  // and times are left out; a metric that is there twice counts twice.
  static absl::StatusOr<MetricsText> Parse(absl::string_view text);

  bool Has(const std::string& metric) const;
  // Sums the series of `metric` that have all of `labels`; 0 if there is none.
  double Sum(const std::string& metric, const Labels& labels = {}) const;
  // The series, in the order in which they came.
  const std::vector<Series>& All(const std::string& metric) const;
  // By their bounds; the series that have all of `labels` are added up.
  std::vector<Bucket> Buckets(const std::string& histogram,
                              const Labels& labels = {}) const;

 private:
  std::map<std::string, std::vector<Series>> series_;
};

// Returns an upper bound of the quantile `share` (0 to 1) of what was observed
// between two looks at a histogram; 0 if nothing was.
double QuantileBetween(const std::vector<Bucket>& before,
                       const std::vector<Bucket>& after, double share);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_METRICS_TEXT_H_
