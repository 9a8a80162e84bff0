// Two looks at a process, as rates.

#ifndef PENSTOCK_CLI_TOP_RATES_H_
#define PENSTOCK_CLI_TOP_RATES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/top/sample.h"

namespace penstock::cli {

// Metrics of which more than one view shows something.
constexpr char kSessions[] = "penstock_sessions";
constexpr char kMessages[] = "penstock_messages_total";
constexpr char kBytes[] = "penstock_message_bytes_total";

// What goes wrong, and what people call it.
struct Trouble {
  const char* metric;
  const char* says;
};
constexpr Trouble kTroubles[] = {
    {"penstock_paths_lost_total", "fast paths lost"},
    {"penstock_paths_regained_total", "fast paths regained"},
    {"penstock_connections_refused_total", "connections refused"},
    {"penstock_credit_stalls_total", "waits for room on a path"},
    {"penstock_window_stalls_total", "waits for a reader"},
    {"penstock_work_completion_errors_total", "RDMA errors"},
    {"penstock_log_lines_suppressed_total", "log lines left out"},
    {"penstock_trace_events_dropped_total", "trace events left out"}};

// `before` and `after` have to live on. What has become less, as in a process
// that was started anew, has the rate 0.
class Rates {
 public:
  Rates(const Sample& before, const Sample& after);

  double seconds() const { return seconds_; }
  double Now(const std::string& metric, const Labels& labels = {}) const;
  double PerSecond(const std::string& metric, const Labels& labels = {}) const;
  // Of the calls of clients that ended in between; 0 if there are none.
  absl::Duration Quantile(const Labels& labels, double share) const;

  // Of a connection of `after`, by one of its counters.
  double PerSecond(const metrics::ConnectionInfo& connection,
                   uint64_t metrics::ConnectionInfo::*counter) const;
  absl::Duration Quantile(const metrics::ConnectionInfo& connection,
                          double share) const;

  // The paths that were ever used.
  std::vector<std::string> UsedPaths() const;
  // The connections of `after`, those with the most bytes a second first.
  std::vector<const metrics::ConnectionInfo*> Busiest() const;

 private:
  // Null: it is new.
  const metrics::ConnectionInfo* Before(
      const metrics::ConnectionInfo& connection) const;
  double Rate(double before, double after) const;

  const Sample& before_;
  const Sample& after_;
  const double seconds_;
  std::map<uint64_t, const metrics::ConnectionInfo*>
      connections_;  // of before_
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_RATES_H_
