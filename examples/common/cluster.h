// Runs parameter servers and workers on this host, each in its own process.

#ifndef PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
#define PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/process.h"
#include "examples/common/progress.h"

namespace penstock::examples {

// A cluster of processes, which end when this object is destroyed. Not
// thread-safe.
class Cluster {
 public:
  // Starts servers that wait for `workers` workers, each on a free port.
  // Returns once all servers listen.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(unsigned servers,
                                                        unsigned workers);

  const std::vector<std::string>& addresses() const { return addresses_; }

  // Runs one process for each worker, and blocks until all have ended. Each
  // runs `program` with `flags`, --servers and --rank. Workers print the lines
  // of a ProgressPrinter. Calls `on_progress` for each line of rank 0. Returns
  // INTERNAL, with the process's name, if a process fails or dies. Returns
  // DEADLINE_EXCEEDED if no process prints a line for a minute.
  absl::Status RunWorkers(const std::string& program,
                          const std::vector<std::string>& flags,
                          const OnProgress& on_progress);

  // Ends the servers by SIGTERM, and waits for them.
  absl::Status Stop();

 private:
  explicit Cluster(unsigned workers) : workers_(workers) {}
  absl::StatusOr<std::vector<Process>> StartWorkers(
      const std::string& program, const std::vector<std::string>& flags) const;

  const unsigned workers_;
  std::vector<Process> servers_;
  std::vector<std::string> addresses_;
};

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
