// Computes rates from two samples of a process.

#ifndef PENSTOCK_CLI_TOP_RATES_H_
#define PENSTOCK_CLI_TOP_RATES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/top/sample.h"

namespace penstock::cli {

// Metrics that several views show.
constexpr char kSessions[] = "penstock_sessions";
constexpr char kMessages[] = "penstock_messages_total";
constexpr char kBytes[] = "penstock_message_bytes_total";

// A kind of failure, and its description.
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

// The rates between two samples, which must outlive this object. A counter that
// has decreased, because the process was restarted, has the rate 0.
class Rates {
 public:
  Rates(const Sample& before, const Sample& after);

  double seconds() const { return seconds_; }
  double Now(const std::string& metric, const Labels& labels = {}) const;
  double PerSecond(const std::string& metric, const Labels& labels = {}) const;
  // Returns a quantile for client calls that ended between the samples, or 0 if
  // there are none.
  absl::Duration Quantile(const Labels& labels, double share) const;

  // Returns the rate of a counter of one of `after`'s connections.
  double PerSecond(const metrics::ConnectionInfo& connection,
                   uint64_t metrics::ConnectionInfo::*counter) const;
  absl::Duration Quantile(const metrics::ConnectionInfo& connection,
                          double share) const;

  // Returns the paths that were ever used.
  std::vector<std::string> UsedPaths() const;
  // Returns the connections of `after`, in descending order of their byte
  // rates.
  std::vector<const metrics::ConnectionInfo*> Busiest() const;

 private:
  // Returns the earlier state of a connection, or null if the connection is
  // new.
  const metrics::ConnectionInfo* Before(
      const metrics::ConnectionInfo& connection) const;
  double Rate(double before, double after) const;

  const Sample& before_;
  const Sample& after_;
  const double seconds_;
  std::map<uint64_t, const metrics::ConnectionInfo*>
      connections_;  // the connections of before_
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_RATES_H_
