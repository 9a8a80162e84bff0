// What a process says of itself at one time, and asking it.

#ifndef PENSTOCK_CLI_TOP_SAMPLE_H_
#define PENSTOCK_CLI_TOP_SAMPLE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/top/metrics_text.h"

namespace penstock::cli {

// One of the process's connections.
struct ConnectionSample {
  // Its number in the process: no other has it.
  uint64_t id = 0;
  std::string role;
  std::string peer;
  std::string path;
  std::string detail;
  std::string reason;
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t streams = 0;
  // How long its calls took, at a client.
  std::vector<Bucket> call_times;
};

struct Sample {
  absl::Time time;  // base::SteadyNow(): rates are between two of these
  MetricsText metrics;
  // Whether the process tells them: not over HTTP.
  bool has_connections = false;
  std::vector<ConnectionSample> connections;
};

// Parses the answer to kAskConnections.
absl::StatusOr<std::vector<ConnectionSample>> ParseConnections(
    absl::string_view lines);

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
// Those of this network namespace, by their numbers.
std::vector<Answering> AnsweringProcesses();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_SAMPLE_H_
