// One sample of a process: its metrics and connections at one time.

#ifndef PENSTOCK_CLI_TOP_SAMPLE_H_
#define PENSTOCK_CLI_TOP_SAMPLE_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/top/metrics_text.h"
#include "transport/metrics/connection_info.h"

namespace penstock::cli {

struct Sample {
  absl::Time time;  // by base::SteadyNow(), for rates
  MetricsText metrics;
  // True if the process reports its connections, which HTTP does not.
  bool has_connections = false;
  std::vector<metrics::ConnectionInfo> connections;
};

// Queries a process at its status socket. Returns NOT_FOUND if nobody answers
// for the process.
absl::StatusOr<Sample> SampleProcess(pid_t process, absl::Duration limit);

// Queries the metrics of a process at "HOST:PORT" or a URL.
absl::StatusOr<Sample> SampleUrl(const std::string& url, absl::Duration limit);

// A process on this machine with a status socket.
struct Answering {
  pid_t process = 0;
  std::string command;
};
// Returns the processes of this network namespace that accept queries of this
// user, by number: the user's own, or all for root.
std::vector<Answering> AnsweringProcesses();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_SAMPLE_H_
