// What a process says of itself at one time, and asking it.

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
  absl::Time time;  // base::SteadyNow(): rates are between two of these
  MetricsText metrics;
  // Whether the process tells them: not over HTTP.
  bool has_connections = false;
  std::vector<metrics::ConnectionInfo> connections;
};

// Asks the process itself, at its status socket. NOT_FOUND: nobody answers for
// it.
absl::StatusOr<Sample> SampleProcess(pid_t process, absl::Duration limit);

// Asks where a process serves its metrics: "HOST:PORT" or a URL.
absl::StatusOr<Sample> SampleUrl(const std::string& url, absl::Duration limit);

// A process of this machine that has a status socket.
struct Answering {
  pid_t process = 0;
  std::string command;
};
// Returns those of this network namespace that answer this user, by their
// numbers: its own, and for root all.
std::vector<Answering> AnsweringProcesses();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_SAMPLE_H_
